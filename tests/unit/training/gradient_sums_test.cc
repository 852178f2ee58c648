#include "training/trainer/gradient_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <vector>

#include "common/error.h"
#include "common/tensor.h"

namespace outrigger::training {
namespace {

using testing::ElementsAre;

/// Doubles what it gets, as if the other rank had the same, and notes how much that was.
class Doubling final : public Reducer {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t replicas() const override { return 2; }
  void all_reduce(std::span<float> values) override {
    if (fails) throw IoError("the other rank is gone");
    for (float& value : values) value *= 2;
    const std::scoped_lock lock(mutex_);
    sizes_.push_back(values.size());
    changed_.notify_all();
  }
  void all_reduce_bfloat16(std::span<float> values) override {
    all_reduce(values);
    for (float& value : values) value = from_bfloat16(to_bfloat16(value));
  }
  void broadcast(std::span<std::byte>) override {}

  /// What has been summed once it is so many; after ten seconds, what it is.
  std::vector<size_t> sizes(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return sizes_.size() >= count; });
    return sizes_;
  }
  std::atomic<bool> fails = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<size_t> sizes_;
};

class GradientSumsTest : public testing::Test {
 protected:
  GradientSumsTest() { std::iota(gradients_.begin(), gradients_.end(), 1.0f); }
  std::vector<float> doubled() const {
    std::vector<float> all(gradients_.size());
    std::iota(all.begin(), all.end(), 1.0f);
    for (float& value : all) value *= 2;
    return all;
  }
  Doubling reducer_;
  std::vector<float> gradients_ = std::vector<float>(10);
};

TEST_F(GradientSumsTest, EverythingIsSummedOnceInTheSameBuckets) {
  for (const size_t from : {10, 9, 7, 4, 1, 0}) {
    Doubling reducer;
    std::iota(gradients_.begin(), gradients_.end(), 1.0f);
    GradientSums sums(reducer, gradients_, {.bucket = 4});
    sums.ready_from(from);
    sums.wait();
    EXPECT_EQ(gradients_, doubled()) << from;
    EXPECT_THAT(reducer.sizes(3), ElementsAre(2, 4, 4)) << from;
  }
}

TEST_F(GradientSumsTest, WhatIsReadyGoesBeforeTheRestIs) {
  GradientSums sums(reducer_, gradients_, {.bucket = 4});
  sums.ready_from(9);
  sums.ready_from(5);
  EXPECT_THAT(reducer_.sizes(1), ElementsAre(2)) << "the next bucket begins at 4";
  sums.ready_from(4);
  EXPECT_THAT(reducer_.sizes(2), ElementsAre(2, 4));
  gradients_[0] = 100;
  sums.wait();
  EXPECT_EQ(gradients_[0], 200);
  EXPECT_EQ(gradients_[9], 20);
}

TEST_F(GradientSumsTest, StepsFollowEachOther) {
  GradientSums sums(reducer_, gradients_, {.bucket = 4});
  for (int step = 0; step < 50; ++step) {
    std::iota(gradients_.begin(), gradients_.end(), 1.0f);
    sums.ready_from(6);
    sums.wait();
    ASSERT_EQ(gradients_, doubled());
  }
  EXPECT_EQ(reducer_.sizes(150).size(), 150u);
}

TEST_F(GradientSumsTest, TravelAsBFloat16WhereAskedTo) {
  gradients_[2] = 1.0f + 1.0f / 1024;  // bfloat16 has 8 bits
  GradientSums sums(reducer_, gradients_, {.bucket = 4, .bfloat16 = true});
  sums.wait();
  EXPECT_EQ(gradients_[2], 2.0f);
  EXPECT_EQ(gradients_[9], 20.0f);
}

TEST_F(GradientSumsTest, ALostRankIsTold) {
  GradientSums sums(reducer_, gradients_, {.bucket = 4});
  reducer_.fails = true;
  sums.ready_from(4);
  EXPECT_THROW(sums.wait(), IoError);
}

TEST_F(GradientSumsTest, EndsWhileSomethingIsNotReady) {
  {
    GradientSums sums(reducer_, gradients_, {.bucket = 4});
    sums.ready_from(9);
  }
  EXPECT_EQ(reducer_.sizes(0).size(), 0u);
}

}  // namespace
}  // namespace outrigger::training
