#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Ends, AJobIsCompleteWhenItsServerEndedWellAndItsWorkersEndThen) {
  World world = running("  workers: {replicas: 2}\n");
  world.end("faces-server-0-0",
            {0, "", R"({"exitCode":0,"message":"done","progress":{"step":300,"percent":100}})"});
  const Plan first = world.pass();
  EXPECT_THAT(first.actions, IsEmpty());
  EXPECT_EQ(world.status().state, "Complete");
  EXPECT_EQ(world.status().completion_time, world.now);
  EXPECT_EQ(world.status().progress->step, 300);
  EXPECT_EQ(world.status().progress->percent, 100);
  world.settle();
  world.finish_deletions();
  EXPECT_THAT(world.names(), ElementsAre("faces-server-0-0"));
}

TEST(Ends, NothingIsWrongAnyMoreWithAJobThatHasEnded) {
  World world = running("  workers: {replicas: 1}\n");
  world.end("faces-worker-0-0", {1});
  world.settle();
  ASSERT_EQ(world.condition("Degraded").substr(0, 4), "True");
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "True/Trained");
  EXPECT_EQ(world.condition("Degraded"), "False/Ended");
}

TEST(Ends, OneRankThatIsDoneDoesNotCompleteTheJobWhileOthersWork) {
  World world = running("  server: {replicas: 2}\n");
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "");
  world.end("faces-server-1-0", {0});
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "True/Trained");
}

TEST(Ends, ASidecarThatRunsOnDoesNotKeepTheJobFromCompleting) {
  World world = running("");
  world.end("faces-server-0-0", {0});
  Json& status = world.pods.at("faces-server-0-0")["status"];
  status["phase"] = "Running";
  status["containerStatuses"].push_back(
      {{"name", "proxy"}, {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}});
  world.settle();
  EXPECT_EQ(world.status().state, "Complete");
  world.finish_deletions();
  EXPECT_THAT(world.names(), IsEmpty());
}

TEST(Ends, AServerThatHasEndedKeepsItsPodThoughThePhaseIsNotThereYet) {
  World world = running("");
  world.end("faces-server-0-0", {0});
  world.pods.at("faces-server-0-0")["status"]["phase"] = "Running";
  world.settle();
  EXPECT_EQ(world.status().state, "Complete");
  world.finish_deletions();
  EXPECT_EQ(world.names(), std::vector<std::string>{"faces-server-0-0"});
}

TEST(Ends, CleanPodPolicySaysWhichPodsGo) {
  struct Case {
    const char* policy;
    std::vector<std::string> left;
  };
  for (const Case& one :
       {Case{"All", {}}, Case{"Running", {"faces-server-0-0", "faces-worker-0-0"}},
        Case{"None", {"faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"}}}) {
    World world =
        running("  workers: {replicas: 2}\n  cleanPodPolicy: " + std::string(one.policy) + "\n");
    world.end("faces-worker-0-0", {1});
    world.end("faces-server-0-0", {0});
    world.settle();
    world.finish_deletions();
    world.settle();
    EXPECT_EQ(world.names(), one.left) << one.policy;
  }
}

TEST(Ends, WhereNoPodIsToBeCleanedUpAWorkerThatDoesNotHearTheFarewellEndsAfterAMinute) {
  World world = running("  workers: {replicas: 2}\n  cleanPodPolicy: None\n");
  world.end("faces-server-0-0", {0});
  world.settle();
  world.end("faces-worker-0-0", {0});
  EXPECT_EQ(world.look().look_again, world.now + seconds(60));
  world.advance(seconds(59));
  world.settle();
  EXPECT_EQ(world.living("worker"), std::vector<std::string>{"faces-worker-1-0"});
  world.advance(seconds(1));
  world.settle();
  world.finish_deletions();
  EXPECT_THAT(world.names(), ElementsAre("faces-server-0-0", "faces-worker-0-0"));
}

TEST(Ends, WhereNoPodIsToBeCleanedUpAServerKeepsItsLogsThoughASidecarRunsOn) {
  for (const int code : {0, 12}) {
    World world = running("  cleanPodPolicy: None\n");
    world.end("faces-server-0-0", {code});
    Json& status = world.pods.at("faces-server-0-0")["status"];
    status["phase"] = "Running";
    status["containerStatuses"].push_back(
        {{"name", "proxy"}, {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}});
    world.settle();
    world.advance(seconds(60));
    world.settle();
    EXPECT_EQ(world.status().state, code == 0 ? "Complete" : "Failed");
    EXPECT_EQ(world.living("server").size(), 1U) << code;
  }
}

TEST(Ends, OfAJobThatFailedNothingRunsOnWhateverItsPolicy) {
  World world =
      running("  workers: {replicas: 2}\n  cleanPodPolicy: None\n  activeDeadlineSeconds: 100\n");
  world.end("faces-worker-0-0", {1});
  world.settle();
  world.advance(seconds(100));
  world.settle();
  ASSERT_EQ(world.condition("Failed"), "True/DeadlineExceeded");
  world.finish_deletions();
  EXPECT_THAT(world.names(), ElementsAre("faces-worker-0-0"));
}

TEST(Ends, AFailureThatTryingAgainDoesNotMendFailsAtOnceWithItsLastWords) {
  World world = running("");
  world.end("faces-server-0-0",
            {12, "Error", R"({"exitCode":12,"message":"/data/faces holds no images"})"});
  const auto events = world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/BadData");
  EXPECT_EQ(world.status().last_failure->message, "/data/faces holds no images");
  EXPECT_EQ(world.status().last_failure->exit_code, 12);
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(events[0].reason, "Failed");
}

TEST(Ends, AFinishedJobStaysFinishedWhateverItsPodsDo) {
  World world = running("");
  world.end("faces-server-0-0", {0});
  world.settle();
  const api::TrainingJobStatus before = world.status();
  world.vanish("faces-server-0-0");
  world.advance(seconds(1000));
  world.spec().suspend = true;
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.status(), before);
}

TEST(Ends, TheObjectGoesWhenItsTimeToLiveIsOverAndNotBefore) {
  World world = running("  ttlSecondsAfterFinished: 60\n");
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.look().look_again, world.now + seconds(60));
  world.advance(seconds(59));
  world.pass();
  EXPECT_FALSE(world.job_deleted);
  world.advance(seconds(1));
  const Plan plan = world.pass();
  EXPECT_TRUE(world.job_deleted);
  EXPECT_EQ(std::get<Remove>(plan.actions.back()).uid, world.job.metadata.uid);
}

TEST(Ends, WithoutATimeToLiveItIsKept) {
  World world = running("");
  world.end("faces-server-0-0", {0});
  world.settle();
  world.advance(seconds(100'000'000));
  world.pass();
  EXPECT_FALSE(world.job_deleted);
  EXPECT_EQ(world.look().look_again, std::nullopt);
}

}  // namespace
}  // namespace outrigger::controller
