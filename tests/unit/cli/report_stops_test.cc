#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/history.h"
#include "tests/unit/cli/report_fixture.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string evaluation_line(int step, double seconds, const char* by) {
  return R"({"type":"evaluation","accuracy":0.5,"loss":1,"step":)" + std::to_string(step) +
         R"(,"seconds":)" + std::to_string(seconds) + R"(,"by":")" + by + "\"}\n";
}

std::string checkpoint_line(int step, double seconds) {
  return R"({"type":"checkpoint","step":)" + std::to_string(step) + R"(,"path":"p","seconds":)" +
         std::to_string(seconds) + "}\n";
}

TEST_F(ReportTest, TellsHowLongTrainingStoodStillBetweenSteps) {
  write(step(0, 0.01) + step(1, 0.01) + evaluation_line(2, 5, "server") + checkpoint_line(2, 1) +
        step(2, 0.01) + evaluation_line(3, 90, "workers") + step(3, 0.01));
  const RunHistory::Stops stops = read_history(folder()).stops();
  EXPECT_NEAR(stops.evaluation_percent, 50, 1e-9) << "5 of 10 s; workers did the other beside it";
  EXPECT_NEAR(stops.checkpoint_percent, 10, 1e-9);
  const std::string html = page();
  for (const char* part :
       {"50.0 %</b><span>stands still to evaluate", "10.0 %</b><span>and for checkpoints",
        "Training stands still 50 % of its time while the server evaluates",
        "spec.training.evaluate.everySteps", "spec.training.evaluate.place: Workers",
        "spec.checkpoint.everySteps", "Within steps the device is the limit"})
    EXPECT_THAT(html, HasSubstr(part));

  write(step(0, 0.01) + step(1, 0.01));
  for (const char* part : {"stands still", "and for checkpoints", "Within steps"})
    EXPECT_THAT(page(), Not(HasSubstr(part)));
}

TEST_F(ReportTest, WhatComesBehindTheLastStepHoldsNothingUp) {
  write(step(0, 0.01) + step(1, 0.01) + evaluation_line(2, 5, "server") + checkpoint_line(2, 1));
  const RunHistory::Stops stops = read_history(folder()).stops();
  EXPECT_EQ(stops.evaluation_percent, 0);
  EXPECT_EQ(stops.checkpoint_percent, 0);
}

TEST_F(ReportTest, AnEvaluationThatTheServerTookOverFromWorkersWentOnBesideSteps) {
  write(step(0, 0.01) + step(1, 0.01) + evaluation_line(1, 90, "server") + step(2, 0.01));
  EXPECT_EQ(read_history(folder()).stops().evaluation_percent, 0);
}

TEST_F(ReportTest, OfCheckpointsBeforeARunWasResumedTheOneItWentOnFromCounts) {
  const std::string resumed =
      R"({"type":"plan","plan":1,"step":1,"incarnation":2,"cut":"Input","reason":"to measure"})"
      "\n";
  write(resumed + step(0, 0.1) + checkpoint_line(1, 1) + step(1, 0.1) + checkpoint_line(2, 7) +
        step(2, 0.1) + resumed + step(1, 0.1) + step(2, 0.1));
  const RunHistory history = read_history(folder());
  ASSERT_EQ(history.checkpoints.size(), 1u);
  EXPECT_EQ(history.checkpoints[0].step, 1u);
  EXPECT_NEAR(history.stops().checkpoint_percent, 25, 1e-9) << "1 of 4 s";
}

}  // namespace
}  // namespace outrigger::cli
