#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Suspend, AJobThatBeginsSuspendedMakesNothingAndSaysSo) {
  World world("  suspend: true\n");
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_THAT(world.others, IsEmpty());
  EXPECT_EQ(world.status().state, "Suspended");
  EXPECT_EQ(world.status().execution_attempts, 0);
  EXPECT_EQ(world.status().start_time, std::nullopt);
}

TEST(Suspend, ServersEndFirstAndWorkersHelpUntilTheyHave) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().suspend = true;
  world.settle();
  EXPECT_THAT(world.living("server"), IsEmpty());
  EXPECT_EQ(world.living("worker").size(), 2U);
  EXPECT_EQ(world.condition("Suspended"), "False/Suspending");
  EXPECT_EQ(world.status().state, "Suspending");
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.living("worker"), IsEmpty());
}

TEST(Suspend, ItIsSuspendedOnlyWhenAllPodsAreGone) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().suspend = true;
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "False/Suspending");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.status().start_time, std::nullopt);
  EXPECT_THAT(world.status().images, IsEmpty());
}

TEST(Suspend, NeitherIsCountedAsARestart) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().suspend = true;
  world.settle();
  world.end("faces-server-0-0", {20});
  world.settle();
  for (int i = 0; i < 3; ++i) {
    world.finish_deletions();
    world.settle();
  }
  world.spec().suspend = false;
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.condition("Suspended"), "False/Resumed");
  EXPECT_EQ(world.status().state, "Running");
}

TEST(Suspend, AResumedJobStartsItsDeadlinesAndImagesAnew) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().suspend = true;
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  world.advance(seconds(5000));
  world.options.server_image = "registry.example/outrigger-server:2";
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(world.status().start_time, world.now);
  EXPECT_EQ(world.status().images.at("server"), "registry.example/outrigger-server:2");
  EXPECT_EQ(world.living("server").size(), 1U);
}

void end_all(World& world) {
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
}

TEST(Suspend, ResumedWhileServersStillEndItWaitsForAllPodsAndBeginsAnew) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().suspend = true;
  world.settle();
  world.options.server_image = "registry.example/outrigger-server:2";
  world.spec().suspend = false;
  world.settle();
  EXPECT_THAT(world.names("server"), ElementsAre("faces-server-0-0"));
  EXPECT_EQ(world.condition("Suspended"), "False/Suspending");
  world.advance(seconds(50));
  end_all(world);
  EXPECT_EQ(world.living("server").size(), 1U);
  EXPECT_EQ(world.living("worker").size(), 2U);
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.status().start_time, world.now);
  EXPECT_EQ(world.status().images.at("server"), "registry.example/outrigger-server:2");
  EXPECT_EQ(world.condition("Suspended"), "False/Resumed");
}

TEST(Suspend, AServerThatEndsByOurSignalAfterItWasResumedBreaksNoRule) {
  World world = running(
      "  server: {engine: External, template: {spec: {containers: [{name: server, image: own}]}}}\n"
      "  failurePolicy: {rules: [{name: killed, role: Server, onExitCodes: [143], action: "
      "FailJob}]}\n");
  world.spec().suspend = true;
  world.settle();
  world.spec().suspend = false;
  world.settle();
  world.end("faces-server-0-0", {143});
  end_all(world);
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Suspend, AServerOnADeadNodeHoldsAResumedJobNoLongerThanItsGrace) {
  World world = running();
  world.dead.insert("node-of-faces-server-0-0");
  world.spec().suspend = true;
  world.settle();
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "False/Suspending");
  world.advance(seconds(120 + 31));
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "False/Resumed");
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(Suspend, AnEditThatCannotBeRunIsToldAndWaitsForAnother) {
  World world = running();
  world.spec().suspend = true;
  end_all(world);
  world.spec().server.gpus = 1;  // without an image for them
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "True/NotSupported");
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
  EXPECT_EQ(world.condition("Suspended"), "True/NotSupported");
  EXPECT_THAT(world.names(), IsEmpty());
  world.spec().server.gpus = 0;
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Suspend, ASpecThatCannotBeReadIsToldAndWaitsForAnOperatorThatCan) {
  World world = running();
  world.spec().suspend = true;
  end_all(world);
  world.spec().suspend = false;
  world.errors = {{"spec.training.loss.newLoss", "unknown field"}};
  world.only_for_servers = true;
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "True/InvalidSpec");
  EXPECT_THAT(world.names(), IsEmpty());
  world.errors.clear();
  world.settle();
  EXPECT_EQ(world.living("server").size(), 1U);
}

TEST(Suspend, AServerThatFinishesMeanwhileCompletesTheJob) {
  World world = running("  workers: {replicas: 2}\n");
  world.spec().suspend = true;
  world.settle();
  world.end("faces-server-0-0", {0});
  world.settle();
  EXPECT_EQ(world.status().state, "Complete");
}

TEST(Suspend, AServerOnADeadNodeHoldsWorkersNoLongerThanItsGrace) {
  World world = running("  workers: {replicas: 2}\n");
  world.dead.insert("node-of-faces-server-0-0");
  world.spec().suspend = true;
  world.settle();
  EXPECT_EQ(world.living("worker").size(), 2U);
  world.advance(seconds(120 + 31));
  world.settle();
  EXPECT_THAT(world.living("worker"), IsEmpty());
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "False/Suspending");  // its pod is not gone
}

}  // namespace
}  // namespace outrigger::controller
