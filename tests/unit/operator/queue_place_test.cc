#include <gmock/gmock.h>

#include "tests/unit/operator/queue_world.h"

namespace outrigger::controller {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(QueuePlace, EvictionStopsServersFirstAndTheQuotaGoesBackWithTheLastPod) {
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

TEST(QueuePlace, AnEvictedJobGoesOnWithoutARestartCounted) {
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

TEST(QueuePlace, AWorkloadThatSomebodyDeletesStopsTheJobBeforeItQueuesAgain) {
  World world = admitted();
  world.others.erase(kWorkloadKey);
  world.settle();
  EXPECT_THAT(world.living("server"), IsEmpty());
  EXPECT_FALSE(world.others.contains(kWorkloadKey));
  for (int i = 0; i < 2; ++i) {
    world.finish_deletions();
    world.settle();
  }
  EXPECT_TRUE(world.others.contains(kWorkloadKey));
  EXPECT_EQ(world.status().state, "Queued");
}

TEST(QueuePlace, ResumedWhileItsPodsEndAJobEntersAnewWithWhatItWantsByThen) {
  World world = admitted();
  world.spec().suspend = true;
  world.settle();
  world.spec().suspend = false;
  world.spec().server.replicas = 3;
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  EXPECT_EQ(world.status().state, "Queued");
  EXPECT_EQ(workload(world)["spec"]["podSets"][0]["count"], 3);
  EXPECT_THAT(world.names(), IsEmpty());
  admit(world);
  world.settle();
  EXPECT_EQ(world.living("server").size(), 3U);
}

TEST(QueuePlace, SuspendingGivesThePlaceBackAndResumingAsksForANewOne) {
  World world = admitted();
  world.spec().suspend = true;
  world.settle();
  EXPECT_TRUE(world.others.contains(kWorkloadKey));
  for (int i = 0; i < 2; ++i) {
    world.finish_deletions();
    world.settle();
  }
  EXPECT_FALSE(world.others.contains(kWorkloadKey));
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  world.spec().workers.replicas = 3;
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["podSets"][1]["count"], 3);
  EXPECT_EQ(world.condition("Suspended"), "True/Queued");
}

TEST(QueuePlace, FewerWorkersGiveTheirQuotaBackForThisAdmission) {
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

TEST(QueuePlace, MoreWorkersThanAreAdmittedWait) {
  World world = admitted("  workers: {replicas: 1}\n");
  world.spec().workers.replicas = 3;
  world.settle();
  EXPECT_EQ(world.living("worker").size(), 1U);
  EXPECT_EQ(world.status().state, "Running");
  EXPECT_THAT(told(world, "Degraded"), HasSubstr("the queue admitted 1 of 3 workers"));
}

TEST(QueuePlace, AJobThatStillWaitsAsksForWhatItWantsNow) {
  World world = queued("  workers: {replicas: 1}\n");
  world.spec().workers.replicas = 4;
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["podSets"][1]["count"], 4);
  world.spec().workers.replicas = 0;
  world.settle();
  EXPECT_EQ(workload(world)["spec"]["podSets"].size(), 1U);
}

TEST(QueuePlace, AnAutoscaledJobAsksForItsMostAndGivesNoneBack) {
  World world = admitted("  workers: {replicas: 1, maxReplicas: 4, autoscaling: {}}\n");
  EXPECT_EQ(workload(world)["spec"]["podSets"][1]["count"], 4);
  EXPECT_FALSE(workload(world)["status"].contains("reclaimablePods"));
  EXPECT_EQ(world.living("worker").size(), 1U);
  world.spec().workers.replicas = 4;
  world.settle();
  EXPECT_EQ(world.living("worker").size(), 4U);
}

TEST(QueuePlace, AnEndedJobFinishesItsWorkloadOnceNoPodRuns) {
  World world = admitted();
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.status().state, "Complete");
  EXPECT_EQ(workload_says(world, "Finished"), "");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(workload_says(world, "Finished"), "True/Succeeded");
}

TEST(QueuePlace, OfAJobWhosePodsAreKeptOnlyThoseThatEndedNeedNoQuota) {
  World world = admitted("  workers: {replicas: 1}\n  cleanPodPolicy: None\n");
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.status().state, "Complete");
  EXPECT_EQ(workload_says(world, "Finished"), "");
  world.end("faces-worker-0-0", {0});
  world.settle();
  EXPECT_EQ(workload_says(world, "Finished"), "True/Succeeded");
  EXPECT_EQ(world.names().size(), 2U);
}

TEST(QueuePlace, WhatNeverEndsByItselfKeepsNoPlaceOfAJobThatIsDone) {
  for (const char* policy : {"Running", "None"}) {
    World world =
        admitted("  workers: {replicas: 3}\n  cleanPodPolicy: " + std::string(policy) + "\n");
    world.wait_in("faces-worker-0-0", "ImagePullBackOff");
    world.pods.at("faces-worker-1-0").erase("status");
    world.pods.at("faces-worker-1-0")["spec"].erase("nodeName");  // nobody places it
    world.end("faces-server-0-0", {0});
    Json& status = world.pods.at("faces-server-0-0")["status"];
    status["phase"] = "Running";
    status["containerStatuses"].push_back(
        {{"name", "proxy"}, {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}});
    world.settle();
    world.advance(seconds(60));
    world.settle();
    EXPECT_EQ(workload_says(world, "Finished"), "") << policy;
    world.finish_deletions();
    world.settle();
    EXPECT_EQ(workload_says(world, "Finished"), "True/Succeeded") << policy;
  }
}

TEST(QueuePlace, TheServersReadinessIsTold) {
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
