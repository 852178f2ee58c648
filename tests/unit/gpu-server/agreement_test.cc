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
#include "nn/cpu/instruction_set.h"
#include "tests/fakes/thread_reducer.h"
#include "tests/support/comes_true.h"
#include "tests/support/own_process.h"

namespace outrigger::gpu_server {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::comes_true;

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
    const KeepWaiting work(first, std::chrono::milliseconds(1), [&] { interrupted = true; });
    waiting.wish_stop();
    EXPECT_TRUE(comes_true([&] { return interrupted.load(); }));
  }
  Agreement settling(&first);
  EXPECT_TRUE(settling.settle({.progress_deadline = std::chrono::seconds(7)}).stop);
  other.join();
  EXPECT_GE(waiting.waits(), 1U);
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
  const KeepWaiting work(ranks, std::chrono::milliseconds(1), [&] { interrupted = true; });
  EXPECT_TRUE(comes_true([&] { return interrupted.load(); }));
}

/// Ranks of which the others tell this, each its own; the one under test has nothing there.
class TellingRanks final : public training::Reducer {
 public:
  TellingRanks(uint32_t rank, std::vector<std::vector<float>> told)
      : rank_(rank), told_(std::move(told)) {}
  uint32_t rank() const override { return rank_; }
  uint32_t replicas() const override { return static_cast<uint32_t>(told_.size()); }
  void all_reduce(std::span<float> values) override {
    if (sizes_.empty()) return add_sizes(values);
    float* at = values.data();
    for (size_t i = 0; i < told_.size(); at += static_cast<size_t>(sizes_[i++]))
      for (size_t j = 0; j < told_[i].size(); ++j) at[j] += told_[i][j];
  }
  void all_reduce_bfloat16(std::span<float>) override { FAIL(); }
  void broadcast(std::span<std::byte>) override { FAIL(); }

 private:
  void add_sizes(std::span<float> values) {
    ASSERT_EQ(values.size(), told_.size());
    for (size_t i = 0; i < told_.size(); ++i) values[i] += static_cast<float>(told_[i].size());
    sizes_.assign(values.begin(), values.end());
  }

  const uint32_t rank_;
  const std::vector<std::vector<float>> told_;
  std::vector<float> sizes_;
};

TEST(Agreement, GathersWhatRanksTellHoweverMuchThatIs) {
  TellingRanks ranks(1, {{5, 6}, {}, {9}});
  const auto told = Agreement(&ranks).gather(std::vector<float>{1, 2, 3});
  EXPECT_EQ(told, (std::vector<std::vector<float>>{{5, 6}, {1, 2, 3}, {9}}));
}

TEST(Agreement, RanksComputeWithWhatAllOfThemHave) {
  testing_support::in_own_process([] {
    Agreement(nullptr).agree_on_instruction_set();
    EXPECT_EQ(nn::cpu::instruction_set(), nn::cpu::best_instruction_set());
    constexpr float kBeyondAny = 99;
    TellingRanks better(0, {{}, {kBeyondAny}});
    Agreement(&better).agree_on_instruction_set();
    EXPECT_EQ(nn::cpu::instruction_set(), nn::cpu::best_instruction_set());
    TellingRanks one_of_the_least(1, {{kBeyondAny}, {}, {0}});
    Agreement(&one_of_the_least).agree_on_instruction_set();
    EXPECT_EQ(nn::cpu::instruction_set(), nn::cpu::instruction_sets().front());
  });
}

/// What the ranks say that refuse to start, each so.
std::vector<std::string> refusals(const std::vector<Start>& starts) {
  fakes::RankMeeting ranks(static_cast<uint32_t>(starts.size()));
  std::mutex mutex;
  std::vector<std::string> texts;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank < starts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      fakes::ThreadReducer reducer(ranks, rank);
      try {
        Agreement(&reducer).check_start(starts[rank]);
      } catch (const IoError& error) {
        const std::scoped_lock lock(mutex);
        texts.emplace_back(error.what());
      }
    });
  }
  threads.clear();
  return texts;
}

constexpr uint64_t kNoFloat = (uint64_t{1} << 24) + 1;

TEST(Agreement, RanksThatStartAlikeGoOnHoweverManyTheyAre) {
  Start start{.total_steps = 1000 * kNoFloat, .samples = kNoFloat};
  start.data.fill(std::byte{0xfe});
  for (const size_t ranks : {1, 2, 3, 8, 12}) {
    for (const uint64_t step : {uint64_t{0}, uint64_t{12}, uint64_t{4097}, uint64_t{15'000},
                                uint64_t{123'457}, kNoFloat, 1000 * kNoFloat}) {
      start.step = step;
      EXPECT_THAT(refusals(std::vector<Start>(ranks, start)), IsEmpty()) << ranks << " at " << step;
    }
  }
}

TEST(Agreement, RanksThatStartFromDifferentStepsAreAllRefused) {
  EXPECT_THAT(refusals({{.step = 12}, {.step = 8}}), SizeIs(2));
  EXPECT_THAT(refusals({{.step = 12}, {.step = 8}, {.step = 12}}),
              AllOf(SizeIs(3), Each(HasSubstr("by rank 12, 8, 12"))));
  EXPECT_THAT(refusals({{.step = kNoFloat - 1}, {.step = kNoFloat}}), SizeIs(2))
      << "which are one float";
  EXPECT_THAT(refusals({{.step = 0}, {.step = kNoFloat - 1}}), SizeIs(2));
}

// Each draws its part of the batches by numbers in its own listing.
TEST(Agreement, RanksThatListDifferentDataAreAllRefused) {
  EXPECT_THAT(refusals({{.samples = 9}, {.samples = 10}}),
              AllOf(SizeIs(2), Each(HasSubstr("different data for spec.data.train, by rank 9 "
                                              "samples (0000000000000000), 10 samples"))));
  Start other{.samples = 9};
  other.data.front() = std::byte{1};
  EXPECT_THAT(refusals({{.samples = 9}, other}), SizeIs(2)) << "as many, but others";
}

TEST(Agreement, RanksThatWouldEndAtDifferentStepsAreAllRefused) {
  EXPECT_THAT(refusals({{.total_steps = 100}, {.total_steps = 110}}),
              AllOf(SizeIs(2), Each(HasSubstr("end at different steps, by rank 100, 110"))));
}

}  // namespace
}  // namespace outrigger::gpu_server
