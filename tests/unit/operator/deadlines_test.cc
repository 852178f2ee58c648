#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::HasSubstr;

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
  world.pods.at("faces-server-0-0")["status"]["conditions"][0]["status"] = "False";
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

}  // namespace
}  // namespace outrigger::controller
