#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Workers, MoreReplicasAddTheNextIndexesAndTouchNoRunningPod) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().workers.replicas = 4;
  world.settle();
  EXPECT_THAT(world.living("worker"), ElementsAre("faces-worker-0-0", "faces-worker-1-0",
                                                  "faces-worker-2-0", "faces-worker-3-0"));
  EXPECT_EQ(world.status().execution_attempts, 1);
}

TEST(Workers, FewerReplicasEndTheHighestIndexesFirstAndTheServersGoOn) {
  World world = running("  workers: {replicas: 4}\n");
  world.spec().workers.replicas = 1;
  std::vector<std::string> deleted;
  for (const Action& action : world.look().actions)
    deleted.push_back(std::get<Remove>(action).name);
  EXPECT_THAT(deleted, ElementsAre("faces-worker-3-0", "faces-worker-2-0", "faces-worker-1-0"));
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("faces-server-0-0", "faces-worker-0-0"));
  EXPECT_EQ(world.condition("PodsReady"), "True/Ready");
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(Workers, ScalingToNoneAndBackLeavesTheServerAlone) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().workers.replicas = 0;
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("faces-server-0-0"));
  world.spec().workers.replicas = 1;
  world.settle();
  EXPECT_THAT(world.living("worker"), ElementsAre("faces-worker-0-0"));
}

TEST(Workers, AFailedWorkerNeverFailsOrRestartsTheJob) {
  for (const int code : {1, 11, 13, 15, 137}) {
    World world = running("  workers: {replicas: 1}\n");
    world.end("faces-worker-0-0", {code});
    world.settle();
    EXPECT_EQ(world.condition("Failed"), "") << code;
    EXPECT_EQ(world.condition("Running"), "True/ServersReady") << code;
    EXPECT_EQ(world.status().execution_attempts, 1) << code;
  }
}

TEST(Workers, AFailedWorkerIsReplacedAfterABackOffThatDoublesUpToFiveMinutes) {
  World world = running("  workers: {replicas: 1}\n");
  std::vector<int64_t> waits;
  for (int failure = 0; failure < 11; ++failure) {
    world.end(world.living("worker").at(0), {1});
    world.settle();
    world.finish_deletions();
    EXPECT_THAT(world.living("worker"), IsEmpty());
    const auto again = world.look().look_again;
    ASSERT_TRUE(again);
    waits.push_back((*again - world.now).count());
    world.advance(*again - world.now);
    world.settle();
    ASSERT_EQ(world.living("worker").size(), 1U);
    world.run_all();
    world.settle();
  }
  EXPECT_THAT(waits, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300));
}

// A server waits for a place meanwhile; a rule restarts the job for 7.
TEST(Workers, TheyBackOffWhileAServerIsStartedAgain) {
  for (const int code : {1, 7}) {
    World world = running(
        "  workers: {replicas: 1}\n  failurePolicy: {rules: [{name: it, role: Worker, "
        "onExitCodes: [7], action: RestartJob}]}\n");
    world.disrupt("faces-server-0-0");
    world.settle();
    world.finish_deletions();
    world.settle();
    std::vector<int64_t> waits;
    for (int failure = 0; failure < 5; ++failure) {
      const std::string failed = world.living("worker").at(0);
      if (!world.pods.at(failed).contains("status")) world.run(failed);
      world.end(failed, {code});
      world.settle();
      world.finish_deletions();
      world.settle();
      EXPECT_THAT(world.living("worker"), IsEmpty());
      const api::Time again = world.look().look_again.value();
      waits.push_back((again - world.now).count());
      world.advance(again - world.now);
      world.settle();
    }
    EXPECT_THAT(waits, ElementsAre(1, 2, 4, 8, 16)) << code;
    world.run_all();
    world.settle();
    world.finish_deletions();
    world.settle();
    EXPECT_EQ(world.condition("Restarting"), "False/Restarted") << code;
    EXPECT_EQ(world.status().restarts, 0) << code;
  }
}

TEST(Workers, OneThatCannotBeReplacedKeepsNoRestartFromItsEnd) {
  World world = running(
      "  workers: {replicas: 1}\n  failurePolicy: {rules: [{name: it, role: Worker, "
      "onExitCodes: [7], action: RestartJob}]}\n");
  world.end("faces-worker-0-0", {7});
  world.pass();
  world.refusals = {{"pod faces-worker-0-1", api::Role::kWorker, RefusalCause::kQuota,
                     "exceeded quota", world.now}};
  for (int i = 0; i < 2; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.condition("Restarting"), "False/Restarted");
  EXPECT_EQ(world.status().restarts, 1);
}

TEST(Workers, OneThatLivedWellIsForgivenItsFormerFailures) {
  World world = running("  workers: {replicas: 1}\n");
  for (int i = 0; i < 3; ++i) {
    world.end(world.living("worker").at(0), {1});
    world.advance(seconds(10));
    world.settle();
    world.run_all();
  }
  world.advance(seconds(3600));
  world.end(world.living("worker").at(0), {1});
  world.settle();
  EXPECT_EQ(world.look().look_again, world.now + seconds(1));
}

TEST(Workers, OneFailedPodIsKeptPerIndex) {
  World world = running("  workers: {replicas: 1}\n");
  for (int i = 0; i < 4; ++i) {
    world.end(world.living("worker").at(0), {1});
    world.advance(seconds(600));
    world.settle();
    world.run_all();
    world.finish_deletions();
    world.settle();
  }
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.names("worker"), ElementsAre("faces-worker-0-3", "faces-worker-0-4"));
}

TEST(Workers, AFailingWorkerShowsAsDegradedUntilItsSuccessorIsReady) {
  World world = running("  workers: {replicas: 2}\n");
  world.end("faces-worker-1-0", {14, "Error", R"({"exitCode":14,"message":"no memory left"})"});
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "True/OutOfMemory");
  EXPECT_EQ(world.status().roles[1].failed, 1);
  EXPECT_EQ(world.status().workers->summary, "1/2");
  world.advance(seconds(5));
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "True/OutOfMemory");
  world.run_all();
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "False/WorkersWell");
  EXPECT_EQ(world.status().workers->summary, "2/2");
}

TEST(Workers, ABadImageOfWorkersDegradesAndNothingMore) {
  World world("  workers: {replicas: 1}\n");
  world.settle();
  world.run("faces-server-0-0");
  world.wait_in("faces-worker-0-0", "InvalidImageName");
  world.settle();
  world.advance(seconds(100000));
  world.settle();
  EXPECT_EQ(world.condition("Degraded"), "True/InvalidImageName");
  EXPECT_EQ(world.condition("PodsReady"), "False/InvalidImageName");
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Workers, OneOnADrainedNodeIsReplacedAtOnceAndNothingIsDegraded) {
  World world = running("  workers: {replicas: 1}\n");
  world.add_condition("faces-worker-0-0", {{"type", "DisruptionTarget"}, {"status", "True"}});
  world.ask_to_delete("faces-worker-0-0");
  world.settle();
  EXPECT_THAT(world.living("worker"), ElementsAre("faces-worker-0-1"));
  EXPECT_EQ(world.condition("Degraded"), "");
}

TEST(Workers, OneThatHangsOnADeadNodeBlocksNothing) {
  World world = running("  workers: {replicas: 1}\n");
  world.dead.insert("node-of-faces-worker-0-0");
  world.ask_to_delete("faces-worker-0-0");
  world.settle();
  world.finish_deletions();
  world.run_all();
  world.settle();
  EXPECT_THAT(world.names("worker"), ElementsAre("faces-worker-0-0", "faces-worker-0-1"));
  EXPECT_EQ(world.condition("PodsReady"), "True/Ready");
}

TEST(Workers, OfTwoWithOneIndexTheOlderStays) {
  World world = running("  workers: {replicas: 1}\n");
  Json twin = world.pods.at("faces-worker-0-0");
  twin["metadata"]["name"] = "faces-worker-0-1";
  twin["metadata"]["uid"] = "twin";
  world.pods["faces-worker-0-1"] = twin;
  world.settle();
  EXPECT_THAT(world.living("worker"), ElementsAre("faces-worker-0-0"));
}

TEST(Workers, OneThatLeftInPeaceComesBackWithoutAHotLoop) {
  World world = running("  workers: {replicas: 1}\n");
  world.end("faces-worker-0-0", {0});
  world.settle();
  EXPECT_THAT(world.living("worker"), IsEmpty());
  EXPECT_EQ(world.condition("Degraded"), "");
  world.advance(seconds(1));
  world.settle();
  EXPECT_THAT(world.living("worker"), ElementsAre("faces-worker-0-1"));
}

TEST(Workers, TheyOutliveARestartOfTheServers) {
  World world = running("  workers: {replicas: 2}\n");
  world.end("faces-server-0-0", {1});
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_THAT(world.living("worker"), ElementsAre("faces-worker-0-0", "faces-worker-1-0"));
}

}  // namespace
}  // namespace outrigger::controller
