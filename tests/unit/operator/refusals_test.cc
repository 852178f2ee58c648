#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Refusal refusal(const World& world, RefusalCause cause, api::Role role = api::Role::kServer) {
  return {"Pod faces-" + std::string(role == api::Role::kServer ? "server" : "worker") + "-0-0",
          role, cause, "the server's text", world.now};
}

std::string message(const World& world, const std::string& type) {
  for (const auto& condition : world.job.status->conditions) {
    if (condition.type == type) return condition.message;
  }
  return "";
}

/// The job's only worker is beyond the quota; all else runs.
void run_short_of_a_worker(World& world) {
  world.refusals = {refusal(world, RefusalCause::kQuota, api::Role::kWorker)};
  world.settle();
  world.run_all();
}

TEST(Refusals, WhatCanNeverBeCreatedFailsTheJobWithTheServersText) {
  struct Case {
    RefusalCause cause;
    const char* reason;
  };
  for (const Case& one :
       {Case{RefusalCause::kInvalid, "InvalidPod"}, Case{RefusalCause::kPodSecurity, "PodSecurity"},
        Case{RefusalCause::kForeign, "NameCollision"}}) {
    World world;
    world.refusals = {refusal(world, one.cause)};
    world.settle();
    EXPECT_EQ(world.condition("Failed"), std::string("True/") + one.reason);
    EXPECT_THAT(message(world, "Failed"), HasSubstr("Pod faces-server-0-0: the server's text"));
    EXPECT_THAT(world.names(), IsEmpty());
  }
}

TEST(Refusals, AUsedUpQuotaShowsAndIsTriedAgain) {
  World world;
  world.refusals = {refusal(world, RefusalCause::kQuota)};
  world.settle();
  EXPECT_EQ(world.condition("PodsScheduled"), "False/QuotaExceeded");
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.look().look_again, world.now + seconds(15));
  world.advance(seconds(15));
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
  world.refusals.clear();
  world.settle();
  EXPECT_EQ(world.condition("PodsScheduled"), "False/Pending");
}

TEST(Refusals, AChildThatIsRefusedIsTriedAgainAfterAWhileAndThePodsAfterIt) {
  World world;
  world.refusals = {
      {"Service faces-server", std::nullopt, RefusalCause::kQuota, "the text", world.now}};
  world.settle();
  EXPECT_EQ(world.condition("PodsScheduled"), "False/QuotaExceeded");
  EXPECT_FALSE(world.others.contains("Service/faces-server"));
  EXPECT_TRUE(world.others.contains("NetworkPolicy/faces"));
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.look().look_again, world.now + seconds(15));
  world.advance(seconds(15));
  world.settle();
  EXPECT_TRUE(world.others.contains("Service/faces-server"));
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Refusals, AQuotaThatStaysUsedUpFailsAtTheStartupDeadline) {
  World world("  startupDeadlineSeconds: 60\n");
  world.refusals = {refusal(world, RefusalCause::kQuota)};
  world.settle();
  world.advance(seconds(60));
  world.refusals = {refusal(world, RefusalCause::kQuota)};
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/StartupDeadlineExceeded");
  EXPECT_THAT(message(world, "Failed"), HasSubstr("QuotaExceeded"));
}

TEST(Refusals, WorkersBeyondTheQuotaDegradeAndTheServerTrains) {
  World world("  workers: {replicas: 1}\n");
  run_short_of_a_worker(world);
  world.settle();
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  EXPECT_EQ(world.condition("Degraded"), "True/QuotaExceeded");
}

TEST(Refusals, WhatNobodyWantsAnyMoreIsNoTroubleOnceItMayBeAskedForAgain) {
  World world("  workers: {replicas: 1}\n");
  run_short_of_a_worker(world);
  world.settle();
  ASSERT_EQ(world.condition("Degraded"), "True/QuotaExceeded");
  world.spec().workers.replicas = 0;
  world.settle();
  EXPECT_EQ(world.look().look_again, world.now + seconds(15)) << "nothing else would look then";
  world.advance(seconds(15));
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "False/WorkersWell");
  EXPECT_EQ(world.condition("PodsScheduled"), "True/Scheduled");
}

TEST(Refusals, WhatIsAskedForAgainIsTroubleUntilItIsMade) {
  World world("  workers: {replicas: 1}\n");
  run_short_of_a_worker(world);
  world.advance(seconds(15));
  const Plan again = world.look();
  EXPECT_EQ(again.actions.size(), 1U);
  world.write_status(again);
  EXPECT_EQ(world.condition("Degraded"), "True/QuotaExceeded");
}

TEST(Refusals, APolicyPutOnTheNamespaceOfARunningJobCostsItWorkersAndNoMore) {
  World world("  workers: {replicas: 1}\n");
  world.settle();
  world.run_all();
  world.settle();
  world.vanish("faces-worker-0-0");
  world.refusals = {refusal(world, RefusalCause::kPodSecurity, api::Role::kWorker)};
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  EXPECT_EQ(world.condition("Degraded"), "True/PodSecurity");
}

TEST(Refusals, NorIsItsJobFailedForThemWhenItsServersAreLostMeanwhile) {
  for (const auto cause :
       {RefusalCause::kPodSecurity, RefusalCause::kInvalid, RefusalCause::kForeign}) {
    World world = running("  workers: {replicas: 1}\n");
    world.vanish("faces-worker-0-0");
    world.vanish("faces-server-0-0");
    world.refusals = {refusal(world, cause, api::Role::kWorker)};
    world.settle();
    EXPECT_EQ(world.condition("Failed"), "");
    EXPECT_EQ(world.status().execution_attempts, 2);
    world.run_all();
    world.settle();
    EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  }
}

TEST(Refusals, AChildThatIsRefusedFailsNoJobThatHasRunAndIsTriedAgain) {
  World world = running();
  world.others.erase("Service/faces-server");
  const Refusal service{"Service faces-server", std::nullopt, RefusalCause::kInvalid, "the text",
                        world.now};
  world.refusals = {service};
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.condition("PodsScheduled"), "False/InvalidPod");
  EXPECT_FALSE(world.others.contains("Service/faces-server"));
  world.vanish("faces-server-0-0");
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "") << "nor does it in the attempt after";
  world.advance(seconds(15));
  world.settle();
  EXPECT_TRUE(world.others.contains("Service/faces-server"));
  World fresh;
  fresh.refusals = {service};
  fresh.settle();
  EXPECT_EQ(fresh.condition("Failed"), "True/InvalidPod") << "it has never run";
}

TEST(Refusals, AJobThatRunsIsNotEndedByAnOperatorThatDoesNotUnderstandIt) {
  World world("  workers: {replicas: 1}\n");
  world.settle();
  world.run_all();
  world.settle();
  Observed seen = world.observe();
  seen.job.spec.workers.replicas = 0;  // as of a spec that could not be read
  seen.errors = {{"spec.novelty", "is no field"}};
  const Plan made = plan(seen, world.options, world.now);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.status.state, "Running");
  world.spec().network.interface = "eth0";
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "True/NotSupported");
  EXPECT_EQ(world.status().state, "Running");
}

// What is planned once the whole spec was read, and yet is not valid.
Plan plan_where_fields_disagree(World& world) {
  Observed seen = world.observe();
  seen.errors = {{"spec.training.batchSize", "96 is not a multiple of the 5 ranks"}};
  seen.only_invalid = true;
  return plan(seen, world.options, world.now);
}

TEST(Refusals, AJobThatRunsGoesOnThoughItsFieldsDoNotGoTogether) {
  World world = running("  workers: {replicas: 1}\n");
  const auto look = [&] { return plan_where_fields_disagree(world); };
  Plan made = look();
  EXPECT_THAT(made.actions, IsEmpty());
  world.write_status(made);
  EXPECT_EQ(world.condition("Degraded"), "True/InvalidSpec");
  EXPECT_THAT(message(world, "Degraded"),
              HasSubstr("spec.training.batchSize: 96 is not a multiple"));
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  world.vanish("faces-server-0-0");
  world.write_status(look());
  EXPECT_EQ(world.status().execution_attempts, 2);
  made = look();
  world.carry_out(made, made.actions.size());
  EXPECT_EQ(world.living("server").size(), 1U);
  world.settle();  // under an operator that takes it
  EXPECT_EQ(world.condition("Degraded"), "False/WorkersWell");
}

TEST(Refusals, FieldsThatDoNotGoTogetherLeaveASuspendedJobSuspended) {
  World world = running();
  world.spec().suspend = true;
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  ASSERT_EQ(world.condition("Suspended"), "True/Suspended");
  world.write_status(plan_where_fields_disagree(world));
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Refusals, AJobThatRunsGoesOnWhereOnlyItsServersCanReadItsSpec) {
  World world = running();
  world.others.at("ConfigMap/faces-config-1")["data"]["job.yaml"] = "of a newer operator";
  world.errors = {{"spec.training.loss.newLoss", "unknown field"}};
  world.only_for_servers = true;
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "True/InvalidSpec");
  world.vanish("faces-server-0-0");
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
  EXPECT_EQ(world.others.at("ConfigMap/faces-config-2")["data"]["job.yaml"], "of a newer operator");
}

TEST(Refusals, WithoutTheFileOfItsServersSuchAJobIsLeftAlone) {
  World world = running();
  world.others.erase("ConfigMap/faces-config-1");
  world.errors = {{"spec.training.loss.newLoss", "unknown field"}};
  world.only_for_servers = true;
  world.vanish("faces-server-0-0");
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 1);
  EXPECT_FALSE(world.others.contains("ConfigMap/faces-config-1"));
  EXPECT_EQ(world.condition("Degraded"), "True/InvalidSpec");
}

TEST(Refusals, FieldsThatDoNotGoTogetherFailAJobThatHasNotBegun) {
  World world;
  EXPECT_EQ(plan_where_fields_disagree(world).status.state, "Failed");
}

TEST(Refusals, ANamespaceThatEndsIsNoFailure) {
  World world;
  world.refusals = {refusal(world, RefusalCause::kNamespaceEnds)};
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.condition("PodsScheduled"), "False/NamespaceEnds");
}

TEST(Refusals, ASpecThatIsNotValidFailsWithTheField) {
  World world;
  Observed seen = world.observe();
  seen.errors = {{"spec.training.batchSize", "0 is too small; at least 1"}};
  const Plan made = plan(seen, world.options, world.now);
  EXPECT_EQ(made.status.state, "Failed");
  EXPECT_EQ(made.status.conditions[0].reason, "InvalidSpec");
  EXPECT_THAT(made.status.conditions[0].message, HasSubstr("spec.training.batchSize"));
  EXPECT_THAT(made.actions, IsEmpty());
}

TEST(Refusals, WhatIsNotBuiltIsRefusedByNameAndNeverIgnored) {
  struct Case {
    const char* spec;
    const char* field;
  };
  for (const Case& one :
       {Case{"  schedulingPolicy: {gang: Volcano}\n", "spec.schedulingPolicy.gang"},
        Case{"  server: {gpus: 1}\n", "spec.server.gpus"},
        Case{"  checkpoint: {path: relative}\n", "spec.checkpoint.path"}}) {
    World world(one.spec);
    world.settle();
    EXPECT_EQ(world.condition("Failed"), "True/NotSupported") << one.spec;
    EXPECT_THAT(message(world, "Failed"), HasSubstr(one.field));
    EXPECT_THAT(world.names(), IsEmpty());
  }
}

TEST(Refusals, AJobThatSomebodyElseManagesIsLeftAlone) {
  World world("  managedBy: kueue.x-k8s.io/multikueue\n");
  EXPECT_THAT(world.settle(), IsEmpty());
  EXPECT_EQ(world.status(), api::TrainingJobStatus());
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_THAT(world.others, IsEmpty());
  world.status().conditions.push_back({.type = "Failed", .status = api::ConditionStatus::kTrue});
  world.spec().ttl_after_finished = seconds(0);
  world.settle();
  EXPECT_FALSE(world.job_deleted) << "nor ended";
}

TEST(Refusals, AQueueThatOnlyALabelNamesIsNotRunPast) {
  World world;
  world.job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team-a";
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/NotSupported");
  EXPECT_THAT(world.names(), IsEmpty());
}

TEST(Refusals, WithAnImageForGpusTheyAreTaken) {
  for (const char* spec : {"  server: {gpus: 1}\n", "  server: {gpus: 4}\n"}) {
    World world(spec);
    world.options.gpu = true;
    world.settle();
    EXPECT_EQ(world.living("server").size(), 1U) << spec;
  }
}

TEST(Refusals, PortsOfAPodMustNotMeetNorEnd) {
  const auto refused = [](int port, int gpus) {
    World world("  server: {gpus: " + std::to_string(gpus) +
                "}\n  network: {port: " + std::to_string(port) + "}\n");
    world.options.gpu = true;
    world.settle();
    if (world.condition("Failed") != "True/NotSupported") return false;
    EXPECT_THAT(message(world, "Failed"), HasSubstr("spec.network.port: " + std::to_string(port)));
    return true;
  };
  EXPECT_FALSE(refused(65535, 1));
  for (const int gpus : {0, 1}) EXPECT_TRUE(refused(8080, gpus));
  EXPECT_FALSE(refused(8081, 1));
  EXPECT_TRUE(refused(65533, 4));
  EXPECT_FALSE(refused(65532, 4));
  EXPECT_TRUE(refused(8077, 4));
  EXPECT_FALSE(refused(8076, 4));
  EXPECT_TRUE(refused(8083, 4));
  EXPECT_FALSE(refused(8084, 4));
}

}  // namespace
}  // namespace outrigger::controller
