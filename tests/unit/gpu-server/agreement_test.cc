#include "gpu-server/ranks/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "tests/fakes/thread_reducer.h"

namespace outrigger::gpu_server {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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

TEST(Agreement, AllHearThatAnyHasBrokenSamplesToTell) {
  OtherRanks silent(1, {});
  EXPECT_TRUE(Agreement(&silent).settle({.tells_broken = true}).tells_broken);
  OtherRanks telling(0, silent.sent());
  EXPECT_TRUE(Agreement(&telling).settle({}).tells_broken);
  EXPECT_FALSE(Agreement(&silent).settle({}).tells_broken);
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

TEST(Agreement, OthersWaitAsLongAsTheFirstRankIsAtWorkAndItHearsThatTheyWishToStop) {
  fakes::RankMeeting ranks(2);
  fakes::ThreadReducer first(ranks, 0);
  fakes::ThreadReducer second(ranks, 1);
  Agreement waiting(&second);
  Wishes heard;
  std::jthread other([&] { heard = waiting.settle({}); });
  std::atomic<bool> interrupted{false};
  {
    const KeepWaiting work(first, std::chrono::milliseconds(1), [&] {
      interrupted = true;
      interrupted.notify_all();
    });
    waiting.wish_stop();
    interrupted.wait(false);
  }
  EXPECT_GE(waiting.waits(), 1U);
  Agreement settling(&first);
  EXPECT_TRUE(settling.settle({.progress_deadline = std::chrono::seconds(7)}).stop);
  other.join();
  EXPECT_TRUE(heard.stop);
  EXPECT_EQ(heard.progress_deadline, std::chrono::seconds(7)) << "not what was told on the way";
  EXPECT_EQ(settling.waits(), 0U);
}

/// Ranks of which one is lost.
class LostRanks final : public training::Reducer {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t replicas() const override { return 2; }
  void all_reduce(std::span<float>) override { throw IoError("rank 1 is lost"); }
  void all_reduce_bfloat16(std::span<float>) override { FAIL(); }
  void broadcast(std::span<std::byte>) override { FAIL(); }
};

TEST(Agreement, TheFirstRanksWorkIsInterruptedWhereAnotherIsLost) {
  LostRanks ranks;
  std::atomic<bool> interrupted{false};
  const KeepWaiting work(ranks, std::chrono::milliseconds(1), [&] {
    interrupted = true;
    interrupted.notify_all();
  });
  interrupted.wait(false);
  EXPECT_TRUE(interrupted);
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

/// What the ranks say that refuse to start, each from its step.
std::vector<std::string> refusals(const std::vector<uint64_t>& steps) {
  fakes::RankMeeting ranks(static_cast<uint32_t>(steps.size()));
  std::mutex mutex;
  std::vector<std::string> texts;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank < steps.size(); ++rank) {
    threads.emplace_back([&, rank] {
      fakes::ThreadReducer reducer(ranks, rank);
      try {
        Agreement(&reducer).check_start(steps[rank]);
      } catch (const IoError& error) {
        const std::scoped_lock lock(mutex);
        texts.emplace_back(error.what());
      }
    });
  }
  threads.clear();
  return texts;
}

TEST(Agreement, RanksThatStartFromOneStepGoOnHoweverManyTheyAre) {
  constexpr uint64_t kBeyondFloat = (uint64_t{1} << 24) + 1;
  for (const size_t ranks : {1, 2, 3, 8, 12})
    for (const uint64_t step : {uint64_t{0}, uint64_t{12}, uint64_t{4097}, uint64_t{15'000},
                                uint64_t{123'457}, kBeyondFloat, 1000 * kBeyondFloat})
      EXPECT_THAT(refusals(std::vector<uint64_t>(ranks, step)), IsEmpty())
          << ranks << " at " << step;
}

TEST(Agreement, RanksThatStartFromDifferentStepsAreAllRefused) {
  constexpr uint64_t kLarge = uint64_t{1} << 24;
  EXPECT_THAT(refusals({12, 8}), SizeIs(2));
  EXPECT_THAT(refusals({12, 8, 12}), AllOf(SizeIs(3), Each(HasSubstr("by rank 12, 8, 12"))));
  EXPECT_THAT(refusals({kLarge, kLarge + 1}), SizeIs(2)) << "which are one float";
  EXPECT_THAT(refusals({0, kLarge}), SizeIs(2));
}

}  // namespace
}  // namespace outrigger::gpu_server
