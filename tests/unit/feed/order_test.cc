#include "feed/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

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

TEST(SampleOrder, EachSlotHasASeriesOfItsOwnThatStartsWithWhatTheOrderNames) {
  SampleOrder order({.seed = 1, .samples = kSamples});
  SampleOrder same({.seed = 1, .samples = kSamples});
  std::vector<uint32_t> named;
  std::set<std::vector<uint32_t>> all;
  for (uint64_t slot = 0; slot < kSamples; ++slot) {
    std::vector<uint32_t> series;
    for (uint32_t broken = 0; broken < 5; ++broken) series.push_back(order.at(slot, broken));
    for (uint32_t broken = 5; broken-- > 0;) EXPECT_EQ(same.at(slot, broken), series[broken]);
    named.push_back(series.front());
    EXPECT_LT(*std::ranges::max_element(series), kSamples);
    all.insert(series);
  }
  EXPECT_TRUE(is_permutation(named));
  EXPECT_EQ(all.size(), kSamples);
}

}  // namespace
}  // namespace outrigger::feed
