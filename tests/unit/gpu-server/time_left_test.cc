#include "gpu-server/report/time_left.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

using std::chrono::seconds;

TEST(TimeLeft, CountsEvaluationsAndCheckpointsThatAreStillDueAsTheNewestTook) {
  TimeLeft left(
      {.total_steps = 100, .steps_between_evaluations = 20, .steps_between_checkpoints = 50}, 0);
  EXPECT_EQ(left.now(), std::nullopt);
  left.step(20, 1);
  EXPECT_EQ(left.now(), seconds(80)) << "nobody knows what they take";
  left.evaluated(20, seconds(10));
  EXPECT_EQ(left.now(), seconds(80 + 4 * 10));
  left.step(40, 1);
  EXPECT_EQ(left.now(), seconds(60 + 4 * 10)) << "one is due now";
  left.evaluated(40, seconds(8));
  left.step(50, 0.5);
  left.saved(50, seconds(5));
  EXPECT_EQ(left.now(), seconds(25 + 3 * 8 + 5));
  left.step(100, 0.5);
  left.evaluated(80, seconds(8));
  EXPECT_EQ(left.now(), seconds(8 + 5));
  left.evaluated(100, seconds(8));
  left.saved(100, seconds(5));
  EXPECT_EQ(left.now(), seconds(0));
}

TEST(TimeLeft, HasOneEvaluationBehindTheLastStepWhereverEpochsEnd) {
  // Three epochs of 100 samples in batches of 32: behind steps 4, 7 and 10.
  TimeLeft epochs({.total_steps = 10, .steps_between_evaluations = 3.125}, 0);
  epochs.step(4, 0);
  epochs.evaluated(4, seconds(1));
  EXPECT_EQ(epochs.now(), seconds(2));
  TimeLeft steps({.total_steps = 10, .steps_between_evaluations = 4}, 0);
  steps.step(4, 0);
  steps.evaluated(4, seconds(1));
  EXPECT_EQ(steps.now(), seconds(2)) << "behind steps 8 and 10";
}

TEST(TimeLeft, OfAResumedRunKnowsWhatIsDueByTheNumberOfTheStep) {
  TimeLeft left({.total_steps = 200, .steps_between_evaluations = 100}, 95);
  left.step(100, 1);
  left.evaluated(100, seconds(10));
  EXPECT_EQ(left.now(), seconds(100 + 10));
}

TEST(TimeLeft, IsNoneBehindTheEnd) {
  TimeLeft left({.total_steps = 10, .steps_between_evaluations = 5}, 12);
  left.step(12, 1);
  EXPECT_EQ(left.now(), seconds(0));
}

}  // namespace
}  // namespace outrigger::gpu_server
