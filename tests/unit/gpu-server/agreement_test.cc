#include "gpu-server/ranks/agreement.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/error.h"

namespace outrigger::gpu_server {
namespace {

/// Ranks whose values are added to those of the rank under test.
class OtherRanks final : public training::Reducer {
 public:
  OtherRanks(uint32_t rank, std::vector<float> theirs) : rank_(rank), theirs_(std::move(theirs)) {}
  uint32_t rank() const override { return rank_; }
  uint32_t replicas() const override { return 2; }
  void all_reduce(std::span<float> values) override {
    sent_.assign(values.begin(), values.end());
    for (size_t i = 0; i < std::min(values.size(), theirs_.size()); ++i) values[i] += theirs_[i];
  }
  void all_reduce_bfloat16(std::span<float> values) override { all_reduce(values); }
  void broadcast(std::span<std::byte>) override {}
  const std::vector<float>& sent() const { return sent_; }

 private:
  uint32_t rank_;
  std::vector<float> theirs_;
  std::vector<float> sent_;
};

feed::Plan plan_of(int32_t cut) {
  feed::Plan plan;
  plan.number = 4;
  plan.cut = cut;
  plan.stems_away = 3;
  plan.local_inputs = 5;
  plan.gradients = WireFormat::kBFloat16;
  return plan;
}

TEST(Agreement, OneRankDoesWhatItWishes) {
  Agreement agreement(nullptr);
  EXPECT_TRUE(agreement.settle({.stop = true}).stop);
  EXPECT_EQ(agreement.settle({.plan = plan_of(5)}).plan->cut, 5);
  EXPECT_FALSE(agreement.settle({}).stop);
}

TEST(Agreement, AStopOfAnyRankIsEveryones) {
  OtherRanks others(0, {1, 0});
  EXPECT_TRUE(Agreement(&others).settle({}).stop);
  OtherRanks early(1, {0, 1});
  EXPECT_TRUE(Agreement(&early).settle({}).stop_early);
  EXPECT_FALSE(Agreement(&early).settle({}).stop);
}

TEST(Agreement, TheFirstRanksPlanIsTakenByTheOthers) {
  OtherRanks silent(0, {});
  const auto first = Agreement(&silent).settle({.plan = plan_of(5)});
  OtherRanks leading(1, silent.sent());
  const auto second =
      Agreement(&leading).settle({.plan = plan_of(9)});  // a wish that does not count
  for (const auto& wishes : {first, second}) {
    ASSERT_TRUE(wishes.plan);
    EXPECT_EQ(wishes.plan->number, 4);
    EXPECT_EQ(wishes.plan->cut, 5);
    EXPECT_EQ(wishes.plan->stems_away, 3);
    EXPECT_EQ(wishes.plan->local_inputs, 5);
    EXPECT_EQ(wishes.plan->activations, WireFormat::kFloat32);
    EXPECT_EQ(wishes.plan->gradients, WireFormat::kBFloat16);
  }
}

TEST(Agreement, OnlyTheFirstRankSaysWhatTheJobIsLikeNow) {
  const Wishes wishes{.hears = true, .progress_deadline = std::chrono::seconds(40)};
  OtherRanks silent(0, {});
  const Wishes first = Agreement(&silent).settle(wishes);
  OtherRanks leading(1, silent.sent());
  const Wishes second = Agreement(&leading).settle({.progress_deadline = std::chrono::seconds(7)});
  for (const Wishes& all : {first, second}) {
    EXPECT_TRUE(all.hears);
    EXPECT_EQ(all.progress_deadline, std::chrono::seconds(40));
  }
  OtherRanks deaf(1, {});
  EXPECT_FALSE(Agreement(&deaf).settle(wishes).hears);
}

/// Three ranks of which the others tell this much.
class TellingRanks final : public training::Reducer {
 public:
  uint32_t rank() const override { return 1; }
  uint32_t replicas() const override { return 3; }
  void all_reduce(std::span<float> values) override {
    const std::vector<float> theirs =
        sizes_told_ ? std::vector<float>{5, 6, 0, 0, 0, 9} : std::vector<float>{2, 0, 1};
    sizes_told_ = true;
    ASSERT_EQ(values.size(), theirs.size());
    for (size_t i = 0; i < theirs.size(); ++i) values[i] += theirs[i];
  }
  void all_reduce_bfloat16(std::span<float>) override { FAIL(); }
  void broadcast(std::span<std::byte>) override { FAIL(); }

 private:
  bool sizes_told_ = false;
};

TEST(Agreement, GathersWhatRanksTellHoweverMuchThatIs) {
  TellingRanks ranks;
  const auto told = Agreement(&ranks).gather(std::vector<float>{1, 2, 3});
  EXPECT_EQ(told, (std::vector<std::vector<float>>{{5, 6}, {1, 2, 3}, {9}}));
}

TEST(Agreement, RanksThatStartFromDifferentStepsAreRefused) {
  OtherRanks same(1, {12, 144});
  EXPECT_NO_THROW(Agreement(&same).check_start(12));
  OtherRanks other(1, {8, 64});
  EXPECT_THROW(Agreement(&other).check_start(12), IoError);
}

}  // namespace
}  // namespace outrigger::gpu_server
