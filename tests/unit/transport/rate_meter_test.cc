#include "transport/internal/rate_meter.h"

#include <gtest/gtest.h>

namespace outrigger::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kLeast = 16'000;

void add(RateMeter& meter, int pieces, size_t bytes, Duration took) {
  for (int i = 0; i < pieces; ++i) meter.add(bytes, took);
}

TEST(RateMeter, KnowsNothingAtFirst) {
  RateMeter meter(kLeast);
  add(meter, 3, 100'000, milliseconds(1));
  EXPECT_EQ(meter.rate(), 0);
  add(meter, 1, 100'000, milliseconds(1));
  EXPECT_NEAR(meter.rate(), 1e8, 1);
}

TEST(RateMeter, SmallPiecesThatWaitedForTheProcessorSayNothing) {
  RateMeter meter(kLeast);
  add(meter, 1000, 200, milliseconds(4));
  EXPECT_EQ(meter.rate(), 0);
  add(meter, 10, 100'000, milliseconds(1));
  add(meter, 1000, 200, milliseconds(4));
  EXPECT_NEAR(meter.rate(), 1e8, 1);
}

TEST(RateMeter, FollowsALinkThatNarrowsHoweverLongItWasFast) {
  RateMeter meter(kLeast);
  add(meter, 100'000, 100'000, milliseconds(1));
  add(meter, 30, 100'000, milliseconds(100));  // three seconds
  EXPECT_NEAR(meter.rate(), 1e6, 1e5);
}

TEST(RateMeter, FollowsALinkThatWidens) {
  RateMeter meter(kLeast);
  add(meter, 100, 100'000, milliseconds(100));
  add(meter, 64 * 6, 100'000, microseconds(100));
  EXPECT_GT(meter.rate(), 5e8);
}

TEST(RateMeter, BegunAnewTellsWhatCameBeforeUntilItKnowsMore) {
  RateMeter meter(kLeast);
  add(meter, 100, 100'000, milliseconds(100));
  meter.begin_anew();
  add(meter, 3, 100'000, milliseconds(1));
  EXPECT_NEAR(meter.rate(), 1e6, 1);
  add(meter, 1, 100'000, milliseconds(1));
  EXPECT_NEAR(meter.rate(), 1e8, 1);
}

TEST(RateMeter, CountsPiecesThatTookNoTimeOfTheirOwn) {
  RateMeter meter(kLeast);
  add(meter, 10, 100'000, Duration(0));
  EXPECT_EQ(meter.rate(), 0) << "as fast as the clock is coarse: not known";
}

}  // namespace
}  // namespace outrigger::transport
