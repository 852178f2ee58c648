#include <gmock/gmock.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr seconds kPoll{10};

/// A running job that scales by itself between 1 and 8 workers, from 2.
class Scaled {
 public:
  explicit Scaled(const std::string& workers =
                      "replicas: 2, minReplicas: 1, maxReplicas: 8, "
                      "autoscaling: {targetStallPercent: 5}")
      : world("  workers: {" + workers + "}\n") {
    world.settle();
    world.run_all();
    world.settle();
  }
  /// The server says so at every poll for that long.
  void report(std::optional<int> desired, seconds time, std::optional<int> stall = 40) {
    for (const api::Time end = world.now + time; world.now < end;) {
      world.advance(kPoll);
      world.demand.push_back({world.now, desired, stall});
      settle();
    }
  }
  void settle() {
    for (const Event& event : world.settle()) events.push_back(event.reason + ": " + event.message);
    world.run_all();
    world.settle();
    world.finish_deletions();
    world.settle();
  }
  int replicas() { return world.spec().workers.replicas; }
  const api::ScalingStatus& status() { return *world.status().scaling; }

  World world;
  std::vector<std::string> events;
};

struct Row {
  const char* name;
  const char* workers;
  std::vector<int> desired;  // at one poll after the other; -1: the server does not say
  int after;
};

class Demand : public testing::TestWithParam<Row> {};

TEST_P(Demand, LeadsToThatManyWorkers) {
  Scaled job(GetParam().workers);
  for (const int desired : GetParam().desired)
    job.report(desired < 0 ? std::nullopt : std::optional(desired), kPoll);
  EXPECT_EQ(job.replicas(), GetParam().after);
}

constexpr const char* kUsual = "replicas: 2, minReplicas: 1, maxReplicas: 8, autoscaling: {}";
constexpr const char* kQuick =
    "replicas: 4, maxReplicas: 8, autoscaling: {scaleUpWindowSeconds: 10, "
    "scaleDownWindowSeconds: 20}";
constexpr const char* kAtOnce =
    "replicas: 4, maxReplicas: 8, autoscaling: {scaleUpWindowSeconds: 0, "
    "scaleDownWindowSeconds: 0}";

INSTANTIATE_TEST_SUITE_P(
    Rows, Demand,
    testing::Values(
        Row{"NotBeforeTheWindowIsOver", kUsual, {6, 6, 6}, 2},
        Row{"OnceTheWindowIsOver", kUsual, {6, 6, 6, 6}, 6},
        Row{"TheLeastOfTheWindowCountsUpwards", kUsual, {8, 8, 4, 8, 8}, 4},
        Row{"OneLowReportKeepsTheNumber", kUsual, {8, 8, 8, 2}, 2},
        Row{"NoMoreThanMaxReplicas", kUsual, {99, 99, 99, 99}, 8},
        Row{"TheMostOfTheWindowCountsDownwards", kQuick, {1, 3, 1}, 3},
        Row{"DownTakesItsOwnWindow", kQuick, {1, 1}, 4}, Row{"DownToNone", kQuick, {0, 0, 0}, 0},
        Row{"NoFewerThanMinReplicas",
            "replicas: 4, minReplicas: 2, maxReplicas: 8, autoscaling: {scaleDownWindowSeconds: "
            "10}",
            {0, 0},
            2},
        Row{"WithoutWindowsAtOnceUp", kAtOnce, {5}, 5},
        Row{"WithoutWindowsAtOnceDown", kAtOnce, {3}, 3},
        Row{"WhatTheServerDoesNotSayChangesNothing", kQuick, {-1, -1, -1, -1}, 4},
        Row{"TheFirstOfNoneIsMadeToMeasureBy",
            "replicas: 0, maxReplicas: 8, autoscaling: {}",
            {-1, -1, -1, -1},
            1},
        Row{"WithoutAutoscalingNothing", "replicas: 2, maxReplicas: 8", {6, 6, 6, 6, 6}, 2}),
    [](const auto& row) { return row.param.name; });

TEST(Autoscaling, ADeviceThatIsFedNeedsNoFirstWorker) {
  Scaled job("replicas: 0, maxReplicas: 8, autoscaling: {}");
  job.report(std::nullopt, seconds(600), 5);
  EXPECT_EQ(job.replicas(), 0);
  EXPECT_THAT(job.events, IsEmpty());
}

TEST(Autoscaling, IsToldInAnEventAndInTheStatus) {
  Scaled job;
  job.report(6, seconds(40), 34);
  ASSERT_EQ(job.events.size(), 1U);
  EXPECT_EQ(job.events[0],
            "ScalingUp: from 2 workers to 6: the server can use 6, its device waits for 34 % of "
            "the time (target 5)");
  EXPECT_EQ(job.status().replicas, 6);
  EXPECT_EQ(job.status().desired, 6);
  EXPECT_EQ(job.status().former, std::nullopt);
  EXPECT_THAT(job.status().reason, HasSubstr("the server can use 6"));
  EXPECT_EQ(job.world.living("worker").size(), 6U);
  EXPECT_EQ(job.world.condition("ScalingContested"), "");
}

TEST(Autoscaling, TheDecisionIsInTheStatusBeforeTheNumberIsWritten) {
  Scaled job;
  job.report(6, seconds(30));
  job.world.advance(kPoll);
  job.world.demand.push_back({job.world.now, 6, 40});
  const Plan decision = job.world.pass();
  EXPECT_THAT(decision.actions, IsEmpty());
  EXPECT_EQ(job.status().replicas, 6);
  EXPECT_EQ(job.status().former, 2);
  const Plan writing = job.world.look();
  ASSERT_FALSE(writing.actions.empty());
  EXPECT_EQ(std::get<Scale>(writing.actions[0]).replicas, 6);
}

TEST(Autoscaling, AWriteThatWasLostIsMadeAgainAndIsNobodyElses) {
  Scaled job;
  job.report(6, seconds(30));
  job.world.advance(kPoll);
  job.world.demand.push_back({job.world.now, 6, 40});
  job.world.pass();
  job.world.write_status(job.world.look());  // the operator dies before it scales
  EXPECT_EQ(job.replicas(), 2);
  job.settle();
  EXPECT_EQ(job.replicas(), 6);
  EXPECT_EQ(job.status().foreign_time, std::nullopt);
}

TEST(Autoscaling, ABoundThatMovesBeforeTheWriteWins) {
  Scaled job;
  job.report(6, seconds(30));
  job.world.advance(kPoll);
  job.world.demand.push_back({job.world.now, 6, 40});
  job.world.pass();
  job.world.spec().workers.max_replicas = 4;
  job.settle();
  EXPECT_EQ(job.replicas(), 2);
  job.report(6, seconds(40));
  EXPECT_EQ(job.replicas(), 4);
}

TEST(Autoscaling, AWriteOfSomebodyElseBeginsTheWindowAnew) {
  Scaled job;
  job.report(6, seconds(30));
  job.world.spec().workers.replicas = 3;
  job.report(6, seconds(30));
  EXPECT_EQ(job.replicas(), 3);
  EXPECT_EQ(job.status().reason, "somebody else set 3 workers");
  job.report(6, seconds(20));
  EXPECT_EQ(job.replicas(), 6);
  EXPECT_EQ(job.world.condition("ScalingContested"), "");
}

TEST(Autoscaling, TwoWritesOfOthersPauseItForAnHour) {
  Scaled job;
  for (int i = 0; i < 2; ++i) {
    job.report(6, seconds(60));
    EXPECT_EQ(job.replicas(), 6) << i;
    job.world.spec().workers.replicas = 2;
  }
  job.report(6, seconds(3600));
  EXPECT_EQ(job.replicas(), 2);
  EXPECT_EQ(job.world.condition("ScalingContested"), "True/OthersScale");
  EXPECT_THAT(job.events.back(), HasSubstr("ScalingContested: "));
  job.report(6, seconds(60));
  EXPECT_EQ(job.world.condition("ScalingContested"), "False/NobodyElseScales");
  EXPECT_EQ(job.replicas(), 6);
}

TEST(Autoscaling, AServerThatIsSilentMovesNothing) {
  Scaled job;
  job.report(6, seconds(30));
  job.world.advance(seconds(61));
  job.settle();
  EXPECT_EQ(job.replicas(), 2);
}

TEST(Autoscaling, AJobThatDoesNotRunIsLeftAlone) {
  Scaled job;
  job.report(6, seconds(30));
  job.world.spec().suspend = true;
  job.report(6, seconds(60));
  EXPECT_EQ(job.replicas(), 2);
  EXPECT_THAT(job.world.names(), IsEmpty());
}

TEST(Autoscaling, TakenOutOfTheSpecItLeavesNothingBehind) {
  Scaled job;
  job.report(6, seconds(60));
  job.world.spec().workers.autoscaling.reset();
  job.settle();
  EXPECT_FALSE(job.world.status().scaling);
  EXPECT_EQ(job.replicas(), 6);
}

}  // namespace
}  // namespace outrigger::controller
