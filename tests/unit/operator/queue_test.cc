#include <gmock/gmock.h>

#include "tests/unit/operator/queue_world.h"

namespace outrigger::controller {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Queue, AJobWaitsWithoutPodsUntilItIsAdmitted) {
  World world = queued();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.condition("Suspended"), "True/Queued");
  EXPECT_EQ(world.status().state, "Queued");
  EXPECT_EQ(world.status().start_time, std::nullopt);
  set(world, {"QuotaReserved", false, "Pending", "insufficient quota for cpu"});
  world.settle();
  EXPECT_THAT(told(world, "Suspended"), HasSubstr("insufficient quota for cpu"));
  admit(world);
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
  EXPECT_EQ(world.living("worker").size(), 2U);
  EXPECT_EQ(world.condition("Suspended"), "False/Resumed");
  EXPECT_EQ(world.status().execution_attempts, 1);
}

TEST(Queue, AJobSaysWhichCheckItWaitsForAndThatOnePutItOut) {
  World world = queued();
  const Json agreed{{"name", "budget"}, {"state", "Ready"}, {"message", "enough"}};
  const Json open{{"name", "nodes"}, {"state", "Pending"}, {"message", "none yet"}};
  workload(world)["status"]["admissionChecks"] = Json::array({agreed, open});
  set(world, {"QuotaReserved", true, "QuotaReserved", ""});
  world.settle();
  EXPECT_THAT(told(world, "Suspended"), HasSubstr("admission checks: nodes is Pending (none yet)"));
  workload(world)["spec"]["active"] = false;
  set(world, {"Evicted", true, "Deactivated", "nodes were rejected"});
  world.settle();
  EXPECT_EQ(workload_says(world, "QuotaReserved"), "False/Pending");
  EXPECT_THAT(told(world, "Suspended"), HasSubstr("has put the job out: nodes were rejected"));
  EXPECT_THAT(world.names(), IsEmpty());
}

TEST(Queue, TheWorkloadAsksForThePodsAsTheyWillBe) {
  World world = queued(
      "  server: {template: {spec: {containers: [{name: server, resources: {requests: {cpu: "
      "2}}}]}}}"
      "\n  workers: {replicas: 2}\n");
  const Json& object = workload(world);
  EXPECT_EQ(object["spec"]["queueName"], "team-a");
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], world.job.metadata.uid);
  const Json& sets = object["spec"]["podSets"];
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0]["name"], "server");
  EXPECT_EQ(sets[0]["count"], 1);
  EXPECT_EQ(sets[1]["name"], "worker");
  EXPECT_EQ(sets[1]["count"], 2);
  const Json& spec = sets[0]["template"]["spec"];
  EXPECT_EQ(spec["containers"][0]["resources"]["requests"]["cpu"], 2);
  admit(world);
  world.settle();
  EXPECT_EQ(world.pods.at("faces-server-0-0")["spec"]["containers"][0]["resources"],
            spec["containers"][0]["resources"]);
}

TEST(Queue, WithoutKueueAJobWaitsAndSaysWhy) {
  World world(queued_spec());
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_THAT(world.others, IsEmpty());
  EXPECT_THAT(told(world, "Suspended"), HasSubstr("is Kueue installed"));
  EXPECT_EQ(world.look().look_again, world.now + seconds(15));
}

TEST(Queue, AJobThatRunsStaysAsItIsWhileNobodyKnowsItsWorkload) {
  World world = admitted();
  world.queue.known = false;
  const Json kept = workload(world);
  world.others.erase(kWorkloadKey);
  world.settle();
  EXPECT_EQ(world.status().state, "Running");
  EXPECT_EQ(world.living("worker").size(), 2U);
  world.queue.known = true;
  world.others[kWorkloadKey] = kept;
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Queue, AJobThatIsDoneIsCompleteThoughNobodyKnowsItsWorkload) {
  World world = admitted();
  world.queue.known = false;
  world.others.erase(kWorkloadKey);
  world.end("faces-server-0-0",
            {0, "", R"({"exitCode":0,"message":"done","progress":{"step":300,"percent":100}})"});
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "True/Trained");
  EXPECT_EQ(world.status().progress->step, 300);
}

TEST(Queue, AJobWhoseWorkloadIsRefusedSaysWhyItWaits) {
  World world = queued();
  world.others.erase(kWorkloadKey);
  world.refusals = {{"Workload trainingjob-faces", std::nullopt, RefusalCause::kOther,
                     "failed calling webhook", world.now}};
  world.settle();
  EXPECT_EQ(told(world, "Suspended"), "enters queue team-a: failed calling webhook");
  world.refusals[0].cause = RefusalCause::kInvalid;
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/InvalidPod") << "it has never run";
}

TEST(Queue, PodsFollowWhatTheFlavorSays) {
  World world = admitted();
  for (const char* name : {"faces-server-0-0", "faces-worker-1-0"}) {
    const Json& pod = world.pods.at(name);
    EXPECT_EQ(pod["spec"]["nodeSelector"]["disk"], "ssd");
    EXPECT_THAT(pod["spec"]["tolerations"].dump(), HasSubstr("spot"));
    EXPECT_TRUE(pod["metadata"]["labels"].contains("kueue.x-k8s.io/podset"));
  }
}

TEST(Queue, WhereItChoseRacksItsPodsWaitForTheirsBehindAGate) {
  World world = queued(
      "  workers: {replicas: 1, template: {metadata: {annotations: "
      "{kueue.x-k8s.io/podset-required-topology: rack}}}}\n");
  const Json& sets = workload(world)["spec"]["podSets"];
  EXPECT_FALSE(sets[0].contains("topologyRequest"));
  EXPECT_EQ(sets[1]["topologyRequest"], Json({{"required", "rack"}}));
  admit(world);
  for (Json& one : workload(world)["status"]["admission"]["podSetAssignments"])
    one["topologyAssignment"] = {{"levels", Json::array({"rack"})}};
  world.settle();
  const Json gates = Json::array({{{"name", "kueue.x-k8s.io/topology"}}});
  for (const auto& [pod, free] :
       {std::pair("faces-server-0-0", true), {"faces-worker-0-0", false}}) {
    const Json& made = world.pods.at(pod);
    EXPECT_EQ(made["spec"]["schedulingGates"], gates) << pod;
    const Json& annotations = made["metadata"]["annotations"];
    EXPECT_EQ(annotations["kueue.x-k8s.io/workload"], "trainingjob-faces") << pod;
    EXPECT_EQ(annotations.contains("kueue.x-k8s.io/podset-unconstrained-topology"), free) << pod;
  }
}

TEST(Queue, AFlavorThatCannotBeReadKeepsTheJobWaiting) {
  World world = queued();
  admit(world);
  world.queue.flavors.clear();
  world.queue.problem = "resource flavor on-demand: forbidden";
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(told(world, "Suspended"), "resource flavor on-demand: forbidden");
}

TEST(Queue, APriorityClassGoesWithTheWorkloadOnceItsValueIsKnown) {
  World world("  schedulingPolicy: {queue: team-a, priorityClassName: high}\n");
  world.queue.known = true;
  world.queue.problem = "priority class high: not found";
  world.settle();
  EXPECT_THAT(world.others, IsEmpty());
  EXPECT_EQ(told(world, "Suspended"), "priority class high: not found");
  world.queue.problem.clear();
  world.queue.priority = PriorityClass{"high", 1000};
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["priority"], 1000);
  EXPECT_EQ(workload(world)["spec"]["priorityClassName"], "high");
}

TEST(Queue, TheDefaultPriorityClassGoesWithTheWorkloadOfAJobThatNamesNone) {
  World world("  schedulingPolicy: {queue: team-a}\n");
  world.queue.known = true;
  world.queue.priority = PriorityClass{"usual", 10};
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["priority"], 10);
  EXPECT_EQ(workload(world)["spec"]["priorityClassName"], "usual");
}

}  // namespace
}  // namespace outrigger::controller
