#include "feed/stall.h"

#include <gtest/gtest.h>

namespace outrigger::feed {
namespace {

TEST(Stall, WorkThatRanAheadWaitsForItsSlowestStage) {
  StallTimes times{};
  add_wait(0.3, {.read = 0.01, .decode = 0.5, .link = 0.1}, times);
  add_wait(0.2, {.read = 0.01, .decode = 0.05, .link = 0.1}, times);
  add_wait(0.1, {.read = 0.9, .decode = 0.05, .link = 0.1}, times);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kDecode), 0.3);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kLink), 0.2);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kRead), 0.1);
}

TEST(Stall, WorkInsideTheStepIsFollowedBackFromItsArrival) {
  StallTimes times{};
  const Delivery delivery{.decode = 9, .stem = 0.2, .link = 0.1, .weights = 0.05, .in_step = true};
  add_wait(0.15, delivery, times);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kLink), 0.1);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kStem), 0.05);
  times = {};
  add_wait(1.0, delivery, times);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kWeights), 0.05);
  EXPECT_DOUBLE_EQ(of(times, StallCause::kStem), 0.2 + 0.65);
  EXPECT_DOUBLE_EQ(total(times), 1.0);
}

}  // namespace
}  // namespace outrigger::feed
