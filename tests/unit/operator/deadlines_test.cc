#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::HasSubstr;

constexpr const char* kTooLate = "True/StartupDeadlineExceeded";

std::string failure(const World& world) {
  for (const auto& condition : world.job.status->conditions) {
    if (condition.type == "Failed") return condition.message;
  }
  return "";
}

TEST(Deadlines, AJobThatRunsTooLongFails) {
  World world("  activeDeadlineSeconds: 100\n");
  world.settle();
  world.run_all();
  world.settle();
  world.advance(seconds(99));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.advance(seconds(1));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/DeadlineExceeded");
}

TEST(Deadlines, ADeadlineChangedMeanwhileHoldsAsItIsNow) {
  World world("  activeDeadlineSeconds: 100\n");
  world.settle();
  world.spec().active_deadline = seconds(1000);
  world.advance(seconds(500));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Deadlines, AServerThatNobodyPlacesShowsWhyAndFailsAtTheStartupDeadline) {
  World world("  startupDeadlineSeconds: 600\n");
  world.settle();
  Json& pod = world.pods.at("faces-server-0-0");
  pod["status"] = {{"phase", "Pending"},
                   {"conditions", Json::array({{{"type", "PodScheduled"},
                                                {"status", "False"},
                                                {"reason", "Unschedulable"},
                                                {"message", "0/3 nodes are available"}}})}};
  world.settle();
  EXPECT_EQ(world.condition("PodsScheduled"), "False/Unschedulable");
  world.advance(seconds(599));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.advance(seconds(1));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/StartupDeadlineExceeded");
  EXPECT_THAT(failure(world), HasSubstr("0/3 nodes are available"));
}

TEST(Deadlines, AnImageNameThatCanNeverBePulledFailsAtOnce) {
  World world;
  world.settle();
  world.wait_in("faces-server-0-0", "InvalidImageName");
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/InvalidImageName");
}

TEST(Deadlines, OtherTroubleShowsInPodsReadyAndFailsAtTheStartupDeadline) {
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull",
                             "CreateContainerConfigError", "CreateContainerError"}) {
    World world("  startupDeadlineSeconds: 600\n");
    world.settle();
    world.wait_in("faces-server-0-0", reason);
    world.settle();
    EXPECT_EQ(world.condition("PodsReady"), std::string("False/") + reason);
    EXPECT_EQ(world.condition("Failed"), "") << reason;
    world.advance(seconds(600));
    world.settle();
    EXPECT_EQ(world.condition("Failed"), "True/StartupDeadlineExceeded") << reason;
    EXPECT_THAT(failure(world), HasSubstr(reason));
  }
}

TEST(Deadlines, AServerThatOnceRanIsNeverFailedForNotBeingReady) {
  World world("  startupDeadlineSeconds: 60\n");
  world.settle();
  world.run_all();
  world.settle();
  world.unready("faces-server-0-0");
  world.settle();
  EXPECT_EQ(world.condition("Running"), "False/ReadinessLost");
  world.advance(seconds(100'000));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Deadlines, TheStartupDeadlineHoldsForEachRestartFromItsOwnBeginning) {
  World world("  startupDeadlineSeconds: 60\n");
  world.settle();
  world.run_all();
  world.settle();
  world.advance(seconds(5000));
  world.vanish("faces-server-0-0");
  world.settle();
  world.advance(seconds(59));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.advance(seconds(1));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/StartupDeadlineExceeded");
}

// All servers run, then the last of them is put out, and all begin anew.
World put_out(int servers = 1) {
  World world = running(
      "  startupDeadlineSeconds: 60\n  server: {replicas: " + std::to_string(servers) + "}\n");
  world.disrupt("faces-server-" + std::to_string(servers - 1) + "-0");
  for (int i = 0; i < 2; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  return world;
}

TEST(Deadlines, AServerThatWasPreemptedMayWaitForAnotherPlaceAsLongAsItTakes) {
  World world = put_out();
  ASSERT_EQ(world.condition("Restarting"), "True/Disrupted");
  world.advance(seconds(5000));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.wait_in("faces-server-0-1", "ImagePullBackOff");
  world.settle();
  world.advance(seconds(59));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "") << "it has its place since then";
  world.advance(seconds(1));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), kTooLate);
}

TEST(Deadlines, OneThatFoundAPlaceAndFailedBeforeItRanMayWaitForAnotherAgain) {
  World world = put_out();
  world.advance(seconds(5000));
  world.run("faces-server-0-1");
  world.unready("faces-server-0-1");
  world.settle();
  world.end("faces-server-0-1", {22});
  world.settle();
  EXPECT_THAT(world.living("server"), testing::IsEmpty()) << "there is a pause";
  world.advance(seconds(10));
  world.settle();
  ASSERT_EQ(world.living("server"), std::vector<std::string>{"faces-server-0-2"});
  EXPECT_EQ(world.condition("Restarting"), "True/PutOutBeforeRunning");
  world.advance(seconds(5000));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.wait_in("faces-server-0-2", "ImagePullBackOff");
  world.settle();
  world.advance(seconds(59));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.advance(seconds(1));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), kTooLate);
}

// It has its place, and no container of it ever ran.
void refuse_by_node(World& world, const std::string& pod, const char* reason) {
  world.pods.at(pod)["status"] = {
      {"phase", "Failed"}, {"reason", reason}, {"startTime", api::to_string(world.now)}};
  world.settle();
  world.advance(seconds(10));
  world.settle();
}

TEST(Deadlines, OneThatWasPutOutAndThenRefusedByItsNodesFailsAtTheDeadlineFromTheFirstRefusal) {
  for (const char* reason : {"UnexpectedAdmissionError", "OutOfcpu", "Evicted", "NodeShutdown"}) {
    World world = put_out();
    world.advance(seconds(5000));
    for (int refusal = 0; refusal < 6; ++refusal) {
      ASSERT_EQ(world.condition("Failed"), "") << reason << " " << refusal;
      refuse_by_node(world, world.living("server").at(0), reason);
    }
    EXPECT_EQ(world.condition("Failed"), kTooLate) << reason;
    EXPECT_EQ(world.status().restarts, 0) << reason;
  }
}

TEST(Deadlines, OneThatIsPutOutAgainMayWaitAgain) {
  World world = put_out();
  refuse_by_node(world, "faces-server-0-1", "OutOfcpu");
  ASSERT_EQ(world.condition("Restarting"), "True/FailedBeforeRunning");
  world.run("faces-server-0-2");
  world.unready("faces-server-0-2");
  world.disrupt("faces-server-0-2");
  for (int i = 0; i < 2; ++i) {
    world.settle();
    world.finish_deletions();
    world.advance(seconds(10));
  }
  world.settle();
  ASSERT_EQ(world.condition("Restarting"), "True/PutOutBeforeRunning");
  world.advance(seconds(5000));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Deadlines, OnceItsServersRanAJobThatWasPutOutIsAsAnyOther) {
  World world = put_out();
  world.run_all();
  world.settle();
  world.end("faces-server-0-1", {22});
  world.settle();
  EXPECT_EQ(world.condition("Restarting"), "True/IoFailure");
  world.advance(seconds(60));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), kTooLate);
}

TEST(Deadlines, APlaceMayAlsoBeMissingInTheQuota) {
  World world = running("  startupDeadlineSeconds: 60\n");
  world.disrupt("faces-server-0-0");
  world.pass();
  for (int i = 0; i < 3; ++i) {
    world.refusals = {{"pod faces-server-0-1", api::Role::kServer, RefusalCause::kQuota,
                       "exceeded quota", world.now}};
    world.settle();
    world.finish_deletions();
    world.advance(seconds(1000));
  }
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.living("server").size(), 1U) << "it is asked for again";
}

TEST(Deadlines, ARankThatFoundItsPlaceBeforeTheOthersIsNotBlamedForGivingUp) {
  World world = put_out(2);
  const std::string first = world.living("server").at(0);
  world.run(first);
  world.unready(first);
  world.advance(seconds(61));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  world.end(first, {23});
  world.settle();
  for (int i = 0; i < 2; ++i) {
    world.advance(seconds(10));
    world.settle();
    world.finish_deletions();
  }
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.living("server").size(), 2U);
  EXPECT_EQ(world.status().execution_attempts, 3);
}

TEST(Deadlines, ASidecarThatHasEndedLeavesItsServerReady) {
  World world("  startupDeadlineSeconds: 60\n");
  world.settle();
  world.run_all();
  Json& status = world.pods.at("faces-server-0-0")["status"];
  for (Json& condition : status["conditions"]) condition["status"] = "False";
  status["containerStatuses"].push_back(
      {{"name", "aside"}, {"ready", false}, {"state", {{"terminated", {{"exitCode", 0}}}}}});
  world.settle();
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  EXPECT_EQ(world.condition("PodsReady"), "True/Ready");
  world.advance(seconds(60));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Deadlines, ItsJobsWholeTimeIsBoundAllTheSame) {
  World world = running("  activeDeadlineSeconds: 1000\n");
  world.end("faces-server-0-0", {143});
  world.add_condition("faces-server-0-0", {{"type", "DisruptionTarget"}, {"status", "True"}});
  world.settle();
  world.advance(seconds(1000));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/DeadlineExceeded");
}

// How servers are when the deadline comes: ready, done, failed, or without a node.
struct Start {
  const char* engine;
  const char* servers;  // r, d, f or -
  const char* failed;
};

void bring_to(World& world, const std::string& server, char how) {
  if (how == 'r') {
    world.run(server);
  } else if (how == 'd') {
    world.end(server, {0});
  } else if (how == 'f') {
    world.end(server, {1});
  }
}

class DeadlinesOfSeveral : public testing::TestWithParam<Start> {};

TEST_P(DeadlinesOfSeveral, OursStartTogetherAndTheUsersOwnEachForItself) {
  const auto& [engine, servers, failed] = GetParam();
  const std::string states = servers;
  World world("  startupDeadlineSeconds: 600\n  server: {engine: " + std::string(engine) +
              ", replicas: " + std::to_string(states.size()) +
              ", template: {spec: {containers: [{name: server, image: own}]}}}\n");
  world.settle();
  for (size_t i = 0; i < states.size(); ++i)
    bring_to(world, "faces-server-" + std::to_string(i) + "-0", states[i]);
  world.advance(seconds(600));
  world.settle();
  EXPECT_EQ(world.condition("Failed"), failed) << engine << " " << servers;
}

INSTANTIATE_TEST_SUITE_P(
    All, DeadlinesOfSeveral,
    testing::Values(Start{"Builtin", "--", kTooLate}, Start{"Builtin", "r-", ""},
                    Start{"Builtin", "-r", ""}, Start{"Builtin", "rr", ""},
                    Start{"Builtin", "-d", ""}, Start{"Builtin", "-f", ""},
                    Start{"External", "--", kTooLate}, Start{"External", "r-", kTooLate},
                    Start{"External", "rr-", kTooLate}, Start{"External", "-r", kTooLate},
                    Start{"External", "d-", kTooLate}, Start{"External", "rr", ""},
                    Start{"External", "rd", ""}, Start{"External", "rf", ""},
                    Start{"External", "r-f", ""}));

TEST(Deadlines, AJobOfSeveralServersSaysHowManyWereReadyAndWhatTheOthersLack) {
  World world(
      "  startupDeadlineSeconds: 600\n"
      "  server: {engine: External, replicas: 2, template: {spec: {containers: [{name: server, "
      "image: own}]}}}\n");
  world.settle();
  world.run("faces-server-0-0");
  world.wait_in("faces-server-1-0", "ImagePullBackOff");
  world.settle();
  world.advance(seconds(600));
  world.settle();
  EXPECT_EQ(failure(world),
            "1 of 2 servers were ready within startupDeadlineSeconds, 600: ImagePullBackOff, "
            "faces-server-1-0: why");
}

}  // namespace
}  // namespace outrigger::controller
