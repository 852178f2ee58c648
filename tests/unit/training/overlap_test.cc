#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "nn/cpu/backend.h"
#include "nn/loss.h"
#include "tests/fakes/simulation.h"
#include "tests/fakes/small_job.h"
#include "tests/unit/training/overlap_fixture.h"
#include "training/trainer/trainer.h"

/// Ranks on CPUs whose gradients meet while the last backward pass still runs.
namespace outrigger {
namespace {

using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct OverlapRun {
  feed::Plan plan{.number = 1};
  bool bfloat16 = false;
  bool shares_classes = false;
  Backward backward = Backward::kWaitsForSums;
  /// This rank's last micro-batch of this step has a loss that is no number.
  std::optional<uint32_t> loses = {};
};

class Overlap : public testing::Test {
 protected:
  struct Outcome {
    std::vector<training::TrainingState> states;  // after each step
    std::vector<WatchedPass> passes;              // that told anything
    std::string error;
    uint64_t steps = 0;
  };

  fakes::Simulation::World world(uint32_t rank, const nn::Backend& backend) const {
    fakes::Simulation::World world;
    world.graph = &graph_;
    world.backend = &backend;
    world.dataset = &dataset_;
    world.agent = {.leases = 2, .micro_batch = kSamples, .seed = 9};
    world.coordinator.incarnation = 1;
    world.coordinator.total_steps = kSteps;
    world.coordinator.micro_batches = kBatches;
    world.coordinator.micro_batch = kSamples;
    world.coordinator.first_micro_batch = rank * kBatches;
    world.coordinator.all_micro_batches = kRanks * kBatches;
    world.order = {.seed = 9, .samples = 20};
    return world;
  }

  training::TrainerOptions options(const OverlapRun& run, uint32_t rank) const {
    training::TrainerOptions options;
    options.device = {.micro_batch = kSamples, .seed = 9};
    options.micro_batches = kBatches;
    options.total_steps = kSteps;
    options.bfloat16_all_reduce = run.bfloat16;
    options.gradient_bucket = kBucket;
    options.optimizer = {.momentum = 0.9f};
    options.learning_rate = [](uint64_t) { return 0.05f; };
    if (run.shares_classes) options.partial_fc = training::PartialFcOptions{};
    if (run.loses != rank) return options;
    options.device.loss = [](const feed::ReadyMicroBatch& batch, const ConstTensorView& output,
                             const TensorView& gradient) {
      auto result = nn::softmax_cross_entropy(output, batch.labels, 0, gradient);
      if (batch.step == kLosingStep && batch.index + 1 == kBatches)
        result.loss_sum = std::numeric_limits<double>::quiet_NaN();
      return result;
    };
    return options;
  }

  /// Where a rank fails, the meeting breaks up when it has left.
  Outcome train_rank(const OverlapRun& run, uint32_t rank, Meeting& meeting) const {
    Outcome outcome;
    MeetingReducer reducer(meeting, rank);
    try {
      const auto cpu = nn::cpu::make_cpu_backend();
      const ToldBackend backend(*cpu, run.backward, meeting, rank, buckets(run), outcome.passes);
      fakes::SimulationOptions play;
      play.plans = {run.plan};
      fakes::Simulation simulation(world(rank, backend), play, nullptr);
      ThreadPool threads(2);
      training::Trainer trainer(options(run, rank), graph_, backend, threads, simulation,
                                simulation, fakes::fresh_state(graph_), &reducer);
      while (trainer.counters().step < kSteps) {
        outcome.steps = trainer.counters().step;
        trainer.step();
        outcome.states.push_back(trainer.state());
      }
      outcome.steps = kSteps;
    } catch (const training::NumericalError& error) {
      outcome.error = error.what();
    } catch (const IoError& error) {
      outcome.error = error.what();
    }
    if (!outcome.error.empty()) meeting.break_up();
    return outcome;
  }

  std::vector<Outcome> train(const OverlapRun& run, Meeting& meeting) const {
    std::vector<Outcome> outcomes(kRanks);
    std::vector<std::jthread> ranks;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] { outcomes[rank] = train_rank(run, rank, meeting); });
    ranks.clear();
    return outcomes;
  }
  std::vector<Outcome> train(const OverlapRun& run) const {
    Meeting meeting(kRanks);
    return train(run, meeting);
  }

  /// Of gradients, as they are summed.
  Buckets buckets(const OverlapRun& run) const {
    const auto all = run.shares_classes ? graph_.parameter_range({0, graph_.size() - 1}).size
                                        : graph_.parameter_count();
    const bool waits = run.plan.stems_away > 0 || run.plan.here_last > 0;
    return {all, kBucket, waits ? static_cast<int64_t>(run.plan.stem_parameters) : 0};
  }

  feed::Plan split(uint32_t away, uint32_t here_last) const {
    const int32_t cut = graph_.cut("relu1").layers;
    return {.number = 1,
            .cut = cut,
            .stems_away = away,
            .here_last = here_last,
            .stem_trains = true,
            .stem_parameters = static_cast<uint64_t>(graph_.parameter_range({0, cut}).size),
            .stem_buffers = static_cast<uint64_t>(graph_.buffer_range({0, cut}).size)};
  }

  void expect_overlap_and_the_same_weights(OverlapRun run) const {
    const auto told = train(run);
    run.backward = Backward::kTellsNothing;
    const auto untold = train(run);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(told[rank].error, "");
      EXPECT_THAT(untold[rank].passes, IsEmpty());
      ASSERT_EQ(told[rank].states.size(), kSteps);
      for (size_t step = 0; step < kSteps; ++step) {
        EXPECT_EQ(told[rank].states[step].parameters, untold[rank].states[step].parameters);
        EXPECT_EQ(told[rank].states[step].momentum, untold[rank].states[step].momentum);
        EXPECT_EQ(told[rank].states[step].buffers, untold[rank].states[step].buffers);
      }
      // Of every step, the last micro-batch's; where its stem runs here, two programs'.
      int64_t early = 0;
      for (const WatchedPass& pass : told[rank].passes) {
        EXPECT_EQ(pass.left, pass.could_leave);
        early += pass.left_early;
      }
      EXPECT_THAT(told[rank].passes, SizeIs(Ge(kSteps)));
      EXPECT_GE(early, static_cast<int64_t>(kSteps));
    }
  }

  const nn::Graph graph_ = overlap_graph();
  const data::Dataset dataset_ = fakes::three_classes(20);
};

TEST_F(Overlap, BucketsLeaveBeforeTheLastBackwardPassIsOver) {
  expect_overlap_and_the_same_weights({});
  expect_overlap_and_the_same_weights({.bfloat16 = true});
}

TEST_F(Overlap, WhatLiesBehindTheCutLeavesWhereStemsAreAway) {
  expect_overlap_and_the_same_weights({.plan = split(kBatches, 0)});
  expect_overlap_and_the_same_weights({.plan = split(1, 0)});
}

TEST_F(Overlap, StemsThatRunLastHereWaitForThoseAway) {
  expect_overlap_and_the_same_weights({.plan = split(1, 1)});
}

TEST_F(Overlap, StemsThatAllRunHereLeaveAsWell) {
  expect_overlap_and_the_same_weights({.plan = split(0, 0)});
}

TEST_F(Overlap, ClassesThatRanksShareOutAreNoPartOfIt) {
  expect_overlap_and_the_same_weights({.shares_classes = true});
}

TEST_F(Overlap, WeightsAreThoseOfAnyCut) {
  const auto whole = train({});
  for (const feed::Plan& plan : {split(0, 0), split(1, 0), split(1, 1), split(kBatches, 0)}) {
    const auto cut = train({.plan = plan});
    for (size_t step = 0; step < kSteps; ++step)
      EXPECT_EQ(cut[0].states[step].parameters, whole[0].states[step].parameters) << step;
  }
}

// Its gradients may be anything: no other rank gets to see them, and none waits for ever.
TEST_F(Overlap, NothingLeavesARankWhoseLossIsNoNumber) {
  constexpr uint32_t kLoser = 1;
  const OverlapRun run{.loses = kLoser};
  Meeting meeting(kRanks);
  const auto outcomes = train(run, meeting);
  EXPECT_THAT(outcomes[kLoser].error, HasSubstr("the loss is not a number at step 1"));
  EXPECT_THAT(outcomes[0].error, HasSubstr("gone"));
  EXPECT_EQ(outcomes[0].steps, kLosingStep);
  EXPECT_EQ(outcomes[kLoser].steps, kLosingStep);
  EXPECT_THAT(outcomes[kLoser].passes, SizeIs(kLosingStep)) << "of the last one nobody was told";
  // Gradients, then statistics and losses.
  const int64_t steps_before = int64_t{kLosingStep} * (buckets(run).behind(0) + 2);
  EXPECT_EQ(meeting.begun(kLoser), steps_before);
  EXPECT_GT(meeting.begun(0), steps_before) << "the other one had begun";
}

}  // namespace
}  // namespace outrigger
