#include <gmock/gmock.h>

#include "operator/objects/workload.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kKey = "Workload/trainingjob-faces";

std::string queued_spec(const std::string& more = "  workers: {replicas: 2}\n") {
  return "  schedulingPolicy: {queue: team-a}\n" + more;
}

World queued(const std::string& more = "  workers: {replicas: 2}\n") {
  World world(queued_spec(more));
  world.queue.known = true;
  world.settle();
  return world;
}

Json& workload(World& world) { return world.others.at(kKey); }

void set(World& world, const WorkloadCondition& condition) {
  Json& conditions = workload(world)["status"]["conditions"];
  if (conditions.is_null()) conditions = Json::array();
  conditions = with_condition(std::move(conditions), condition, world.now);
}

// As Kueue's scheduler does.
void admit(World& world, const char* flavor = "on-demand") {
  Json assignments = Json::array();
  for (const Json& one : workload(world)["spec"]["podSets"]) {
    assignments.push_back(
        {{"name", one["name"]}, {"count", one["count"]}, {"flavors", {{"cpu", flavor}}}});
  }
  workload(world)["status"]["admission"] = {{"clusterQueue", "all"},
                                            {"podSetAssignments", std::move(assignments)}};
  set(world, {"QuotaReserved", true, "QuotaReserved", ""});
  set(world, {"Admitted", true, "Admitted", ""});
  if (workload(world)["status"]["conditions"].size() > 2)
    set(world, {"Evicted", false, "QuotaReserved", ""});
  world.queue.flavors[flavor] = {{{"disk", "ssd"}}, {}, {}, Json::array({{{"key", "spot"}}})};
}

void evict(World& world) { set(world, {"Evicted", true, "Preempted", "by a higher priority"}); }

World admitted(const std::string& more = "  workers: {replicas: 2}\n") {
  World world = queued(more);
  admit(world);
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

std::string workload_says(World& world, const std::string& type) {
  for (const Json& one : workload(world)["status"]["conditions"]) {
    if (one["type"] == type)
      return one["status"].get<std::string>() + "/" + one["reason"].get<std::string>();
  }
  return "";
}

std::string told(const World& world, const std::string& type) {
  for (const auto& condition : world.job.status->conditions) {
    if (condition.type == type) return condition.message;
  }
  return "";
}

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
  world.others.erase(kKey);
  world.settle();
  EXPECT_EQ(world.status().state, "Running");
  EXPECT_EQ(world.living("worker").size(), 2U);
  world.queue.known = true;
  world.others[kKey] = kept;
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
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

TEST(Queue, EvictionStopsServersFirstAndTheQuotaGoesBackWithTheLastPod) {
  World world = admitted();
  evict(world);
  world.settle();
  EXPECT_THAT(world.living("server"), IsEmpty());
  EXPECT_EQ(world.living("worker").size(), 2U);
  EXPECT_EQ(world.status().state, "Suspending");
  EXPECT_EQ(workload_says(world, "QuotaReserved"), "True/QuotaReserved");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(workload_says(world, "QuotaReserved"), "True/QuotaReserved");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(workload_says(world, "QuotaReserved"), "False/Pending");
  EXPECT_EQ(workload_says(world, "Admitted"), "False/NoReservation");
  EXPECT_EQ(workload_says(world, "Requeued"), "True/Preempted");
  EXPECT_FALSE(workload(world)["status"].contains("admission"));
  EXPECT_EQ(world.status().state, "Queued");
}

TEST(Queue, AnEvictedJobGoesOnWithoutARestartCounted) {
  World world = admitted();
  evict(world);
  world.settle();
  world.end("faces-server-0-0", {20});
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  admit(world);
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.status().state, "Running");
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(workload_says(world, "PodsReady"), "True/Recovered");
}

TEST(Queue, AWorkloadThatSomebodyDeletesStopsTheJobBeforeItQueuesAgain) {
  World world = admitted();
  world.others.erase(kKey);
  world.settle();
  EXPECT_THAT(world.living("server"), IsEmpty());
  EXPECT_FALSE(world.others.contains(kKey));
  for (int i = 0; i < 2; ++i) {
    world.finish_deletions();
    world.settle();
  }
  EXPECT_TRUE(world.others.contains(kKey));
  EXPECT_EQ(world.status().state, "Queued");
}

TEST(Queue, SuspendingGivesThePlaceBackAndResumingAsksForANewOne) {
  World world = admitted();
  world.spec().suspend = true;
  world.settle();
  EXPECT_TRUE(world.others.contains(kKey));
  for (int i = 0; i < 2; ++i) {
    world.finish_deletions();
    world.settle();
  }
  EXPECT_FALSE(world.others.contains(kKey));
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  world.spec().workers.replicas = 3;
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["podSets"][1]["count"], 3);
  EXPECT_EQ(world.condition("Suspended"), "True/Queued");
}

TEST(Queue, FewerWorkersGiveTheirQuotaBackForThisAdmission) {
  World world = admitted("  workers: {replicas: 3}\n");
  world.spec().workers.replicas = 1;
  world.settle();
  EXPECT_FALSE(workload(world)["status"].contains("reclaimablePods")) << "their pods still end";
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(workload(world)["status"]["reclaimablePods"],
            Json::parse(R"([{"name": "worker", "count": 2}])"));
  world.spec().workers.replicas = 3;
  world.settle();
  EXPECT_EQ(world.living("worker").size(), 1U);
  EXPECT_EQ(world.condition("Degraded"), "True/NotAdmitted");
}

TEST(Queue, MoreWorkersThanAreAdmittedWait) {
  World world = admitted("  workers: {replicas: 1}\n");
  world.spec().workers.replicas = 3;
  world.settle();
  EXPECT_EQ(world.living("worker").size(), 1U);
  EXPECT_EQ(world.status().state, "Running");
  EXPECT_THAT(told(world, "Degraded"), HasSubstr("the queue admitted 1 of 3 workers"));
}

TEST(Queue, AJobThatStillWaitsAsksForWhatItWantsNow) {
  World world = queued("  workers: {replicas: 1}\n");
  world.spec().workers.replicas = 4;
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["podSets"][1]["count"], 4);
  world.spec().workers.replicas = 0;
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["podSets"].size(), 1U);
}

TEST(Queue, AnAutoscaledJobAsksForItsMostAndGivesNoneBack) {
  World world = admitted("  workers: {replicas: 1, maxReplicas: 4, autoscaling: {}}\n");
  EXPECT_EQ(workload(world)["spec"]["podSets"][1]["count"], 4);
  EXPECT_FALSE(workload(world)["status"].contains("reclaimablePods"));
  EXPECT_EQ(world.living("worker").size(), 1U);
  world.spec().workers.replicas = 4;
  world.settle();
  EXPECT_EQ(world.living("worker").size(), 4U);
}

TEST(Queue, AnEndedJobFinishesItsWorkloadOnceNoPodRuns) {
  World world = admitted();
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.status().state, "Complete");
  EXPECT_EQ(workload_says(world, "Finished"), "");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(workload_says(world, "Finished"), "True/Succeeded");
}

TEST(Queue, TheServersReadinessIsTold) {
  World world = queued();
  admit(world);
  world.settle();
  EXPECT_EQ(workload_says(world, "PodsReady"), "False/WaitForStart");
  world.run_all();
  world.settle();
  EXPECT_EQ(workload_says(world, "PodsReady"), "True/Started");
  world.end("faces-server-0-0", {1});
  world.settle();
  EXPECT_EQ(workload_says(world, "PodsReady"), "False/WaitForRecovery");
}

}  // namespace
}  // namespace outrigger::controller
