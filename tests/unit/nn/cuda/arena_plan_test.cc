#include "nn/cuda/arena_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/random.h"

namespace outrigger::nn::cuda {
namespace {

// No two requests that live at one moment share a byte; the most that lives at one moment fits.
void expect_valid(const std::vector<ArenaRequest>& requests, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          requests[i].first <= requests[j].last && requests[j].first <= requests[i].last;
      const bool apart = plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + requests[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart || requests[i].bytes == 0 || requests[j].bytes == 0)
          << i << " and " << j;
    }
  }
}

TEST(ArenaPlan, GivesOnePlaceToWhatNeverMeets) {
  const std::vector<ArenaRequest> requests{{1000, 0, 1}, {900, 2, 3}, {1024, 4, 4}};
  const ArenaPlan plan = plan_arena(requests);
  expect_valid(requests, plan);
  EXPECT_EQ(plan.bytes, 1024u);
}

TEST(ArenaPlan, PutsWhatMeetsSideBySide) {
  const std::vector<ArenaRequest> requests{{256, 0, 1}, {256, 1, 2}, {256, 2, 3}};
  const ArenaPlan plan = plan_arena(requests);
  expect_valid(requests, plan);
  EXPECT_EQ(plan.bytes, 512u);
}

TEST(ArenaPlan, OfNothingIsEmpty) {
  EXPECT_EQ(plan_arena({}).bytes, 0u);
  const std::vector<ArenaRequest> nothing{{0, 0, 5}};
  EXPECT_EQ(plan_arena(nothing).bytes, 0u);
}

TEST(ArenaPlan, HoldsForManyDrawnRequests) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, RandomUse::kSyntheticData, 3);
    std::vector<ArenaRequest> requests(40);
    size_t all = 0;
    std::vector<size_t> alive(60);
    for (ArenaRequest& request : requests) {
      request.bytes = random.below(100'000);
      request.first = static_cast<int>(random.below(50));
      request.last = request.first + static_cast<int>(random.below(10));
      all += aligned(request.bytes);
      for (int t = request.first; t <= request.last; ++t)
        alive[static_cast<size_t>(t)] += aligned(request.bytes);
    }
    const ArenaPlan plan = plan_arena(requests);
    expect_valid(requests, plan);
    EXPECT_GE(plan.bytes, *std::max_element(alive.begin(), alive.end()));
    EXPECT_LT(plan.bytes, all);
  }
}

}  // namespace
}  // namespace outrigger::nn::cuda
