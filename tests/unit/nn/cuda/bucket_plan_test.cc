#include "nn/cuda/bucket_plan.h"

#include <gtest/gtest.h>

#include "common/random.h"

namespace outrigger::nn::cuda {
namespace {

// Steps of a chain of layers: the last is first in backward.
std::vector<GradientPiece> chain(const std::vector<int64_t>& sizes) {
  std::vector<GradientPiece> pieces;
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    pieces.push_back({{offset, sizes[i]}, static_cast<int>(sizes.size() - 1 - i)});
    offset += sizes[i];
  }
  return pieces;
}

TEST(BucketPlan, FillsBucketsFromTheEnd) {
  const auto buckets = plan_buckets(chain({5, 10, 40, 60, 30}), 50);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].range.offset, 55);
  EXPECT_EQ(buckets[0].range.size, 90);
  EXPECT_EQ(buckets[0].step, 1);
  EXPECT_EQ(buckets[1].range.offset, 5);
  EXPECT_EQ(buckets[1].range.size, 50);
  EXPECT_EQ(buckets[1].step, 3);
  EXPECT_EQ(buckets[2].range.offset, 0);
  EXPECT_EQ(buckets[2].range.size, 5);
  EXPECT_EQ(buckets[2].step, 4);
}

TEST(BucketPlan, CoversTheArenaOnceAndNeverGoesBeforeWhatItHolds) {
  RandomStream random(1, RandomUse::kSyntheticData, 8);
  for (int round = 0; round < 300; ++round) {
    std::vector<GradientPiece> pieces;
    int64_t end = 100;  // a segment need not begin with the arena
    const uint32_t count = 1 + random.below(30);
    for (uint32_t i = 0; i < count; ++i) {
      pieces.push_back({{end, 1 + random.below(50)}, static_cast<int>(random.below(40)) - 1});
      end = pieces.back().range.end();
    }
    const int64_t least = 1 + random.below(200);
    const auto buckets = plan_buckets(pieces, least);
    int64_t begin = end;
    int step = -1;
    for (const GradientBucket& bucket : buckets) {
      EXPECT_EQ(bucket.range.end(), begin);
      begin = bucket.range.offset;
      EXPECT_GE(bucket.step, step) << "buckets go in one order on every rank";
      step = bucket.step;
      if (begin > 100) {
        EXPECT_GE(bucket.range.size, least);
      }
      for (const GradientPiece& piece : pieces) {
        if (piece.range.offset >= begin) {
          EXPECT_GE(bucket.step, piece.step);
        }
      }
    }
    EXPECT_EQ(begin, 100);
  }
}

TEST(BucketPlan, SendsFrozenLayersWithTheirNeighboursAndNothingOfNothing) {
  EXPECT_TRUE(plan_buckets({}, 10).empty());
  auto pieces = chain({20, 20, 20});
  pieces[0].step = pieces[1].step = -1;
  const auto buckets = plan_buckets(pieces, 20);
  ASSERT_EQ(buckets.size(), 3u);
  for (const GradientBucket& bucket : buckets) EXPECT_EQ(bucket.step, 0);
}

}  // namespace
}  // namespace outrigger::nn::cuda
