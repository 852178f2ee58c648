#include "feed/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "common/error.h"

namespace outrigger::feed {
namespace {

constexpr uint32_t kSamples = 50;

std::vector<uint32_t> epoch_of(SampleOrder& order, uint64_t epoch) {
  std::vector<uint32_t> samples;
  for (uint64_t slot = 0; slot < order.samples(); ++slot)
    samples.push_back(order.at(epoch * order.samples() + slot));
  return samples;
}

bool is_permutation(std::vector<uint32_t> samples) {
  std::ranges::sort(samples);
  std::vector<uint32_t> all(samples.size());
  std::iota(all.begin(), all.end(), 0u);
  return samples == all;
}

OrderOptions windowed(uint32_t window) {
  return {.seed = 1, .samples = kSamples, .window = window, .block_starts = {0, 10, 20, 30, 40}};
}

TEST(SampleOrder, EveryEpochIsAnotherPermutation) {
  SampleOrder order({.seed = 1, .samples = kSamples});
  const auto first = epoch_of(order, 0);
  const auto second = epoch_of(order, 1);
  EXPECT_TRUE(is_permutation(first));
  EXPECT_TRUE(is_permutation(second));
  EXPECT_NE(first, second);
}

TEST(SampleOrder, DependsOnTheSeedAndNotOnWhatWasAskedBefore) {
  SampleOrder forward({.seed = 1, .samples = kSamples});
  SampleOrder backward({.seed = 1, .samples = kSamples});
  SampleOrder other({.seed = 2, .samples = kSamples});
  const auto late = epoch_of(backward, 7);
  EXPECT_EQ(epoch_of(backward, 0), epoch_of(forward, 0));
  EXPECT_EQ(epoch_of(forward, 7), late);
  EXPECT_NE(epoch_of(other, 0), epoch_of(forward, 0));
}

TEST(SampleOrder, ABatchMayStraddleTwoEpochs) {
  SampleOrder order({.seed = 1, .samples = kSamples});
  const auto first = epoch_of(order, 0);
  const auto second = epoch_of(order, 1);
  EXPECT_EQ(order.at(kSamples - 1), first.back());
  EXPECT_EQ(order.at(kSamples), second.front());
  EXPECT_EQ(order.at(kSamples - 1), first.back());
}

TEST(SampleOrder, AWindowKeepsSamplesNearTheirBlock) {
  SampleOrder order(windowed(8));
  const auto samples = epoch_of(order, 0);
  EXPECT_TRUE(is_permutation(samples));
  // The window holds at most 7 samples when a block of 10 begins: never more than two blocks.
  std::set<uint32_t> begun;
  for (size_t i = 0; i < samples.size(); ++i) {
    begun.insert(samples[i] / 10);
    EXPECT_LE(begun.size(), (i + 8) / 10 + 1) << "at " << i;
  }
  EXPECT_FALSE(std::ranges::is_sorted(samples));
}

TEST(SampleOrder, AWindowOfOneReadsBlocksFromEndToEnd) {
  SampleOrder order(windowed(1));
  const auto samples = epoch_of(order, 0);
  for (size_t block = 0; block < 5; ++block) {
    const auto begin = samples.begin() + static_cast<ptrdiff_t>(10 * block);
    EXPECT_EQ(*begin % 10, 0u);
    EXPECT_TRUE(std::is_sorted(begin, begin + 10));
  }
}

TEST(SampleOrder, AWindowAsLargeAsTheDataMixesAllBlocks) {
  SampleOrder order(windowed(kSamples));
  const auto samples = epoch_of(order, 0);
  EXPECT_TRUE(is_permutation(samples));
  std::set<uint32_t> blocks;
  for (size_t i = 0; i < 15; ++i) blocks.insert(samples[i] / 10);
  EXPECT_GE(blocks.size(), 4u);
}

TEST(SampleOrder, BalancedClassesComeEquallyOften) {
  OrderOptions options{.seed = 1, .samples = kSamples, .sampling = Sampling::kClassBalanced};
  options.labels.assign(kSamples, 0);
  options.labels[3] = 1;  // one image of one class, 49 of the other
  SampleOrder order(options);
  int rare = 0;
  for (uint64_t slot = 0; slot < 1000; ++slot) rare += order.at(slot) == 3 ? 1 : 0;
  EXPECT_NEAR(rare, 500, 64);  // four standard deviations
}

TEST(SampleOrder, ABrokenSampleIsReplacedWheneverItWasFound) {
  SampleOrder early({.seed = 1, .samples = kSamples});
  SampleOrder late({.seed = 1, .samples = kSamples});
  for (const uint32_t broken : {4u, 17u, 31u}) EXPECT_TRUE(early.mark_broken(broken));
  static_cast<void>(epoch_of(late, 0));
  for (const uint32_t broken : {31u, 4u, 17u}) late.mark_broken(broken);
  const auto replaced = epoch_of(early, 0);
  EXPECT_EQ(replaced, epoch_of(late, 0));
  SampleOrder whole({.seed = 1, .samples = kSamples});
  const auto drawn = epoch_of(whole, 0);
  for (size_t i = 0; i < drawn.size(); ++i) {
    const bool broken = early.broken().contains(drawn[i]);
    EXPECT_EQ(replaced[i] != drawn[i], broken);
    EXPECT_EQ(early.drawn(i), drawn[i]);
    EXPECT_FALSE(early.broken().contains(replaced[i]));
  }
  EXPECT_FALSE(early.mark_broken(4)) << "known already";
}

TEST(SampleOrder, OfNothingButBrokenSamplesIsRefused) {
  SampleOrder order({.seed = 1, .samples = 3});
  for (uint32_t i = 0; i < 3; ++i) order.mark_broken(i);
  EXPECT_THROW(order.at(0), InvalidInput);
}

}  // namespace
}  // namespace outrigger::feed
