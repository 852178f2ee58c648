#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Restarts, TheCountIsInTheStatusBeforeAnythingIsDeleted) {
  World world = running();
  world.end("faces-server-0-0", {22});
  const Plan first = world.pass();
  EXPECT_THAT(first.actions, IsEmpty());
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.condition("Restarting"), "True/IoFailure");
  const Plan second = world.pass();
  ASSERT_FALSE(second.actions.empty());
  EXPECT_EQ(world.status().restarts, 1);
}

TEST(Restarts, TheNextServerIsMadeWithTheNextAttemptAndRunsAsBefore) {
  World world = running();
  world.end("faces-server-0-0", {22});
  world.settle();
  world.finish_deletions();
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_THAT(world.living("server"), ElementsAre("faces-server-0-1"));
  EXPECT_EQ(world.pods.at("faces-server-0-1")["metadata"]["labels"]["outrigger.dev/attempt"], "2");
  EXPECT_EQ(world.others.at("Service/faces-server")["spec"]["selector"]["outrigger.dev/attempt"],
            "2");
  EXPECT_EQ(world.condition("Restarting"), "False/Restarted");
  EXPECT_EQ(world.status().state, "Running");
}

TEST(Restarts, TheServerThatFailedLastIsKeptForItsLogsUntilTheNextFails) {
  World world = running();
  for (int i = 0; i < 3; ++i) {
    const std::string failed = world.living("server").at(0);
    world.end(failed, {22});
    world.settle();
    world.finish_deletions();
    world.settle();
    world.run_all();
    world.settle();
    EXPECT_THAT(world.names("server"), ElementsAre(failed, world.living("server").at(0)));
    EXPECT_EQ(world.status().roles[0].failed, 0);
  }
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  EXPECT_TRUE(world.others.contains("ConfigMap/faces-config-3"));
  EXPECT_FALSE(world.others.contains("ConfigMap/faces-config-2"));
}

TEST(Restarts, OfRanksThatFailedTogetherTheOneWithTheCauseIsKept) {
  World world = running("  server: {replicas: 3}\n");
  world.end("faces-server-1-0", {1});
  world.end("faces-server-0-0", {23});
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.names("server"), ElementsAre("faces-server-0-0", "faces-server-1-0",
                                                 "faces-server-1-1", "faces-server-2-0"));
  EXPECT_EQ(world.living("server").size(), 3U);
}

TEST(Restarts, AFailedServerWhoseSidecarRunsOnIsNotKept) {
  World world = running();
  world.end("faces-server-0-0", {22});
  Json& status = world.pods.at("faces-server-0-0")["status"];
  status["phase"] = "Running";
  status["containerStatuses"].push_back(
      {{"name", "aside"}, {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}});
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.names("server").size(), 1U);
}

TEST(Restarts, AllRanksRestartTogetherAndCountOnce) {
  World world = running("  server: {replicas: 3}\n");
  world.end("faces-server-1-0", {1});
  world.end("faces-server-0-0", {23});
  world.end("faces-server-2-0", {23});
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.status().last_failure->pod, "faces-server-1-0");
  EXPECT_EQ(world.status().last_failure->reason, "InternalError");
  EXPECT_EQ(world.living("server").size(), 3U);
}

TEST(Restarts, RanksThatGoOnAreGivenTheirGraceAndTheNextAttemptWaitsForThem) {
  World world = running("  server: {replicas: 2}\n");
  world.end("faces-server-0-0", {1});
  world.settle();
  EXPECT_THAT(world.living("server"), IsEmpty());
  EXPECT_THAT(world.names("server"), testing::Contains("faces-server-1-0"));
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.living("server").size(), 2U);
}

TEST(Restarts, ARankThatOnlyLostItsPeerIsNotBelievedForTenSeconds) {
  World world = running("  server: {replicas: 2}\n");
  world.end("faces-server-0-0", {23});
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 1);
  EXPECT_EQ(world.look().look_again, world.now + seconds(10));
  world.advance(seconds(2));
  world.end("faces-server-1-0",
            {13, "Error", R"({"exitCode":13,"message":"the loss is not a number"})"});
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/NumericalError");
}

TEST(Restarts, AfterTenSecondsALostPeerIsCauseEnough) {
  World world = running("  server: {replicas: 2}\n");
  world.end("faces-server-0-0", {23});
  world.settle();
  world.advance(seconds(10));
  world.settle();
  EXPECT_EQ(world.status().restarts, 1);
}

TEST(Restarts, ARankThatGivesUpWaitingForOneThatHasNotBegunIsNotCounted) {
  World world("  server: {replicas: 2}\n  failurePolicy: {maxRestarts: 0}\n");
  world.settle();
  world.end("faces-server-0-0", {23});
  world.settle();
  world.advance(seconds(10));
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Restarts, OnlyARankWithoutAPlaceExcusesThoseWhoGaveUpWaitingForIt) {
  for (const bool placed : {false, true}) {
    World world("  server: {replicas: 2}\n  failurePolicy: {maxRestarts: 0}\n");
    world.settle();
    world.run("faces-server-0-0");
    world.unready("faces-server-0-0");
    if (placed) world.wait_in("faces-server-1-0", "ImagePullBackOff");
    world.end("faces-server-0-0", {23});
    world.advance(seconds(10));
    world.settle();
    EXPECT_EQ(world.condition("Failed"), placed ? "True/MaxRestartsExceeded" : "") << placed;
  }
}

TEST(Restarts, NoMoreThanMaxRestartsAreMade) {
  World world = running("  failurePolicy: {maxRestarts: 2}\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(world.condition("Failed"), "");
    world.end(world.living("server").at(0),
              {21, "Error", R"({"exitCode":21,"message":"no step"})"});
    world.settle();
    world.finish_deletions();
    world.settle();
    world.run_all();
    world.settle();
  }
  EXPECT_EQ(world.condition("Failed"), "True/MaxRestartsExceeded");
  EXPECT_EQ(world.status().restarts, 2);
  EXPECT_EQ(world.status().last_failure->reason, "Hung");
}

TEST(Restarts, APodThatTheClusterEndedIsNotCounted) {
  World world = running("  failurePolicy: {maxRestarts: 0}\n");
  for (int i = 0; i < 5; ++i) {
    const std::string server = world.living("server").at(0);
    world.end(server, {137});
    world.add_condition(server, {{"type", "DisruptionTarget"}, {"status", "True"}});
    world.settle();
    world.finish_deletions();
    world.settle();
    world.run_all();
    world.settle();
  }
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.status().execution_attempts, 6);
}

TEST(Restarts, AServerThatSomebodyDeletedGoesOnAsANewAttemptAndIsNotCounted) {
  World world = running("  failurePolicy: {maxRestarts: 0}\n");
  world.ask_to_delete("faces-server-0-0");
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 1);  // it may still write a checkpoint
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.status().last_failure->reason, "PodDeleted");
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Restarts, AServerDeletedByForceNeverComesBackWithTheSameAttempt) {
  World world = running();
  world.vanish("faces-server-0-0");
  world.settle();
  ASSERT_EQ(world.living("server").size(), 1U);
  EXPECT_EQ(world.pods.at("faces-server-0-0")["metadata"]["labels"]["outrigger.dev/attempt"], "2");
}

TEST(Restarts, OneThatFailedBeforeItEverRanIsFollowedAfterAPause) {
  World world(
      "  failurePolicy: {rules: [{name: again, role: Server, onExitCodes: [3], "
      "action: RestartJobAndIgnoreMaxRestarts}]}\n");
  world.settle();
  world.end("faces-server-0-0", {3});
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.living("server"), IsEmpty());
  EXPECT_EQ(world.look().look_again, world.now + seconds(10));
  world.advance(seconds(10));
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Restarts, TheEventNamesCauseAndCount) {
  World world = running();
  world.end("faces-server-0-0", {22, "Error", R"({"exitCode":22,"message":"the disk is full"})"});
  const auto events = world.settle();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].reason, "Restarting");
  EXPECT_THAT(events[0].message, HasSubstr("attempt 2, restart 1 of 3, after IoFailure"));
  EXPECT_THAT(events[0].message, HasSubstr("the disk is full"));
}

TEST(Restarts, AttemptsOfAJobMadeAnewUnderItsNameCountOn) {
  World world = running();
  const auto number_of = [](const Json& pod) {
    const Json& args = pod["spec"]["containers"][0]["args"];
    for (size_t i = 0; i + 1 < args.size(); ++i) {
      if (args[i] == "--attempt") return std::stoll(args[i + 1].get<std::string>());
    }
    return -1LL;
  };
  for (int i = 0; i < 3; ++i) {
    world.advance(seconds(1));
    world.vanish(world.living("server").at(0));
    world.settle();
    world.run_all();
    world.settle();
  }
  const auto last = number_of(world.pods.at(world.living("server").at(0)));
  World anew;
  anew.now = world.now + seconds(5);
  anew.job.metadata.creation_time = anew.now;
  anew.settle();
  EXPECT_GT(number_of(anew.pods.at("faces-server-0-0")), last);
}

}  // namespace
}  // namespace outrigger::controller
