#include "operator/policy/haste.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

bool may_wait(const World& world) {
  const Plan made = world.look();
  EXPECT_NE(made.status, *world.job.status) << "nothing is to be written";
  return only_counts(*world.job.status, made);
}

TEST(Haste, NumbersOfPodsMayWait) {
  World world = running("  workers: {replicas: 2}\n");
  world.vanish("faces-worker-1-0");
  EXPECT_TRUE(may_wait(world));
}

TEST(Haste, ThatServersArePlacedAndReadyMayWaitUntilAllAre) {
  World world("  workers: {replicas: 2}\n  server: {replicas: 3}\n");
  world.pass();
  EXPECT_TRUE(may_wait(world)) << "they are there";
  world.run("faces-server-0-0");
  EXPECT_TRUE(may_wait(world));
  world.run("faces-server-1-0");
  world.run("faces-server-2-0");
  EXPECT_FALSE(may_wait(world)) << "it runs now, of which an event tells";
}

TEST(Haste, WhatWasDecidedIsWrittenAtOnce) {
  World world;
  EXPECT_FALSE(may_wait(world)) << "the job starts";
  world = running();
  world.end("faces-server-0-0", {.code = 1});
  EXPECT_FALSE(may_wait(world)) << "it restarts";
  world = running();
  world.end("faces-server-0-0", {.code = 0});
  EXPECT_FALSE(may_wait(world)) << "it is complete";
}

TEST(Haste, ATroubleIsWrittenAtOnce) {
  World world("  workers: {replicas: 2}\n");
  world.settle();
  world.wait_in("faces-server-0-0", "ImagePullBackOff");
  EXPECT_FALSE(may_wait(world));
}

TEST(Haste, ASpecThatWasReadIsWrittenAtOnce) {
  World world = running();
  ++*world.job.metadata.generation;
  EXPECT_FALSE(may_wait(world));
}

TEST(Haste, WhatPodsTellIsGatheredForLongerWhereManyJobsWait) {
  using std::chrono::milliseconds;
  EXPECT_EQ(gathering_time(0), milliseconds(100));
  EXPECT_EQ(gathering_time(10), milliseconds(200));
  EXPECT_EQ(gathering_time(1000), milliseconds(1000));
}

}  // namespace
}  // namespace outrigger::controller
