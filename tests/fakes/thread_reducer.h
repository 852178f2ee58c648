#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/tensor.h"
#include "training/trainer/reducer.h"

namespace outrigger::fakes {

/// What ranks that are threads share.
struct RankMeeting {
  explicit RankMeeting(uint32_t ranks) : barrier(ranks), theirs(ranks) {}
  std::barrier<> barrier;
  std::vector<std::span<float>> theirs;
  std::atomic<int> sums = 0;
  std::atomic<int> rounded = 0;  // of which so many of bfloat16
};

/// Sums in the order of the ranks.
class ThreadReducer final : public training::Reducer {
 public:
  ThreadReducer(RankMeeting& meeting, uint32_t rank) : meeting_(meeting), rank_(rank) {}
  uint32_t rank() const override { return rank_; }
  uint32_t replicas() const override { return static_cast<uint32_t>(meeting_.theirs.size()); }
  void all_reduce(std::span<float> values) override {
    meeting_.theirs[rank_] = values;
    meeting_.barrier.arrive_and_wait();
    std::vector<float> sum(values.size());
    for (const auto& one : meeting_.theirs)
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    meeting_.barrier.arrive_and_wait();
    std::ranges::copy(sum, values.begin());
    if (rank_ == 0) ++meeting_.sums;
  }
  void all_reduce_bfloat16(std::span<float> values) override {
    for (float& value : values) value = from_bfloat16(to_bfloat16(value));
    all_reduce(values);
    for (float& value : values) value = from_bfloat16(to_bfloat16(value));
    if (rank_ == 0) ++meeting_.rounded;
  }
  void broadcast(std::span<std::byte>) override { FAIL() << "nothing is to be told"; }

 private:
  RankMeeting& meeting_;
  const uint32_t rank_;
};

}  // namespace outrigger::fakes
