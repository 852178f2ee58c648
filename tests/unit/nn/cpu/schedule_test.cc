#include "nn/cpu/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A backward pass of pieces that note when they are done.
class ScheduleTest : public ::testing::Test {
 protected:
  /// Returns its number.
  int add(PieceKind kind, int tasks, std::vector<Range> gradients = {}) {
    const auto number = static_cast<size_t>(added_++);
    schedule_.add({kind,
                   0,
                   tasks,
                   {},
                   [this, number](const cpu::Run&, const Task&) { ++done_[number]; },
                   std::move(gradients)});
    return static_cast<int>(number);
  }
  int block() { return add(PieceKind::kBlock, 0); }

  /// What was told on the way.
  std::vector<int64_t> tell() {
    schedule_.finish(blocks_);
    std::vector<int64_t> told;
    std::vector<float> none;
    const BackwardOutput out{{}, none, [&](int64_t first) {
                               told.push_back(first);
                               done_when_told_.emplace_back(done_.begin(), done_.end());
                             }};
    Slots slots(threads_.size());
    cpu::Run run;
    run.slots = &slots;
    run.back = &out;
    schedule_.execute(threads_, run, blocks_.count(), nullptr);
    return told;
  }
  int tasks_of(int piece) const {
    const Piece& it = schedule_.pieces()[static_cast<size_t>(piece)];
    return it.kind == PieceKind::kBlock ? blocks_.count() : it.tasks;
  }
  /// Whether it was done when it was told for the time `told`, from 0.
  bool was_done(size_t told, int piece) const {
    return done_when_told_[told][static_cast<size_t>(piece)] == tasks_of(piece);
  }

  const Blocks blocks_{8, 2};
  ThreadPool threads_{3};
  Schedule schedule_;
  int added_ = 0;
  std::vector<std::atomic<int>> done_ = std::vector<std::atomic<int>>(64);
  std::vector<std::vector<int>> done_when_told_;
};

TEST_F(ScheduleTest, GradientsAreReadyWhenWhatWritesThemIsDone) {
  block();
  const int last = add(PieceKind::kWhole, 1, {{70, 30}});
  block();
  const int middle = add(PieceKind::kDeferred, 2, {{40, 30}});
  add(PieceKind::kWhole, 2);  // beside which that runs
  block();
  const int first = add(PieceKind::kWhole, 1, {{0, 40}});
  EXPECT_THAT(tell(), ElementsAre(70, 40, 0));
  EXPECT_TRUE(was_done(0, last));
  EXPECT_FALSE(was_done(0, middle));
  EXPECT_TRUE(was_done(1, middle));
  EXPECT_FALSE(was_done(1, first));
  EXPECT_TRUE(was_done(2, first));
}

// As where a branch joins: its convolution's weights lie behind those of the layers after it.
TEST_F(ScheduleTest, WhatIsWrittenOutOfOrderWaitsForWhatLiesBehind) {
  block();
  const int front = add(PieceKind::kWhole, 1, {{0, 10}});
  block();
  const int end = add(PieceKind::kWhole, 1, {{90, 10}});
  block();
  const int middle = add(PieceKind::kWhole, 1, {{10, 80}});
  EXPECT_THAT(tell(), ElementsAre(90, 0));
  EXPECT_TRUE(was_done(0, front));
  EXPECT_TRUE(was_done(0, end));
  EXPECT_FALSE(was_done(0, middle));
}

// A norm writes the slopes of the activation behind it, which has layers of its own between.
TEST_F(ScheduleTest, AllThatAPieceWritesCounts) {
  block();
  add(PieceKind::kWhole, 1, {{50, 10}});
  block();
  add(PieceKind::kWhole, 1, {{10, 10}, {80, 5}});
  block();
  add(PieceKind::kWhole, 1, {{20, 30}, {60, 20}});
  block();
  add(PieceKind::kWhole, 1, {{0, 10}});
  EXPECT_THAT(tell(), ElementsAre(80, 10, 0)) << "from 85 on nothing was to be written";
}

TEST_F(ScheduleTest, WhatFollowsADeferredPieceIsReadyAPhaseLater) {
  block();
  const int parts = add(PieceKind::kDeferred, 2);
  const int sum = add(PieceKind::kFollowing, 2, {{50, 50}});
  add(PieceKind::kWhole, 2);
  block();
  add(PieceKind::kWhole, 2, {{20, 30}});
  block();
  add(PieceKind::kDeferred, 1, {{0, 20}});
  EXPECT_THAT(tell(), ElementsAre(50, 20, 0));
  EXPECT_TRUE(was_done(0, parts));
  EXPECT_TRUE(was_done(0, sum));
  EXPECT_EQ(schedule_.phase_of(static_cast<size_t>(sum)),
            schedule_.phase_of(static_cast<size_t>(parts)) + 1);
}

TEST_F(ScheduleTest, NobodyIsToldWhereNothingTrains) {
  block();
  add(PieceKind::kWhole, 3);
  block();
  EXPECT_THAT(tell(), IsEmpty());
  for (int piece = 0; piece < added_; ++piece)
    EXPECT_EQ(done_[static_cast<size_t>(piece)], tasks_of(piece));
}

TEST_F(ScheduleTest, TheReadyPartOnlyGrowsFromPhaseToPhase) {
  for (int layer = 9; layer >= 0; --layer) {
    block();
    add(PieceKind::kDeferred, 2);
    add(layer % 3 == 0 ? PieceKind::kDeferred : PieceKind::kFollowing, 2, {{10 * layer, 10}});
    if (layer % 2 == 0) add(PieceKind::kWhole, 1 + layer % 4);
  }
  const auto told = tell();
  EXPECT_TRUE(std::ranges::is_sorted(told, std::greater_equal{}));
  for (int phase = 1; phase < schedule_.phases(); ++phase)
    EXPECT_LE(schedule_.ready_after(phase), schedule_.ready_after(phase - 1));
  EXPECT_EQ(schedule_.ready_after(schedule_.phases() - 1), 0);
}

}  // namespace
}  // namespace outrigger::nn::cpu
