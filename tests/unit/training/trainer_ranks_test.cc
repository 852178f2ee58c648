#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "host_engine.h"
#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "tests/fakes/simulation.h"
#include "tests/fakes/small_job.h"
#include "tests/fakes/thread_reducer.h"
#include "training/trainer/trainer.h"

/// Ranks that step by themselves and take the mean of their weights now and then.
namespace outrigger {
namespace {

constexpr int64_t kMicroBatch = 2;
constexpr uint32_t kMicroBatches = 2;
constexpr uint64_t kSteps = 7;

nn::Graph small_graph(const char* freeze_until) {
  nn::GraphBuilder builder("small", {6, 6, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 3, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("relu1", nn::Relu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  if (freeze_until != nullptr) builder.freeze_until(freeze_until);
  return builder.build();
}

class TrainerRanks : public ::testing::Test {
 protected:
  explicit TrainerRanks(uint32_t ranks = 2, const char* freeze_until = nullptr)
      : ranks_(ranks), graph_(small_graph(freeze_until)), meeting_(ranks) {}

  fakes::Simulation::World world(uint32_t rank) const {
    fakes::Simulation::World world;
    world.graph = &graph_;
    world.backend = backend_.get();
    world.dataset = &dataset_;
    world.agent = {.leases = 2, .micro_batch = kMicroBatch, .seed = 9};
    world.coordinator.incarnation = 1;
    world.coordinator.total_steps = kSteps;
    world.coordinator.micro_batches = kMicroBatches;
    world.coordinator.micro_batch = kMicroBatch;
    world.coordinator.first_micro_batch = rank * kMicroBatches;
    world.coordinator.all_micro_batches = ranks_ * kMicroBatches;
    world.order = {.seed = 9, .samples = 20};
    return world;
  }

  /// The states after each step of one rank.
  std::vector<training::TrainingState> train(uint32_t rank, training::Reducer* reducer,
                                             uint64_t sync_every, bool bfloat16) const {
    training::TrainerOptions options;
    options.device = {.micro_batch = kMicroBatch, .seed = 9};
    options.micro_batches = kMicroBatches;
    options.sync_every = sync_every;
    options.bfloat16_all_reduce = bfloat16;
    options.total_steps = kSteps;
    options.optimizer = {.momentum = 0.9f};
    options.learning_rate = [](uint64_t) { return 0.1f; };
    options.average_decay = 0.9f;
    fakes::SimulationOptions play;
    play.plans = {plan_};
    fakes::Simulation simulation(world(rank), play, nullptr);
    ThreadPool threads(1);
    training::TrainingState state = fakes::fresh_state(graph_);
    std::unique_ptr<nn::Backend> gpu;
    if (!loss_scales_.empty()) {
      gpu = nn::cuda::testing::make_host_backend();
      options.device.precision = nn::Precision::kFloat16;
      state.loss_scale.value = loss_scales_[rank];
    }
    training::Trainer trainer(options, graph_, gpu ? *gpu : *backend_, threads, simulation,
                              simulation, std::move(state), reducer);
    std::vector<training::TrainingState> states;
    while (trainer.counters().step < kSteps) {
      const bool was_synchronized = trainer.synchronized();
      EXPECT_EQ(was_synchronized, reducer == nullptr || trainer.counters().step % sync_every == 0);
      trainer.step();
      states.push_back(trainer.state());
    }
    EXPECT_TRUE(trainer.synchronized()) << "after the last step";
    return states;
  }

  std::vector<std::vector<training::TrainingState>> train_together(uint64_t sync_every,
                                                                   bool bfloat16 = false) {
    std::vector<std::vector<training::TrainingState>> states(ranks_);
    std::vector<std::jthread> ranks;
    for (uint32_t rank = 0; rank < ranks_; ++rank)
      ranks.emplace_back([&, rank] {
        fakes::ThreadReducer reducer(meeting_, rank);
        states[rank] = train(rank, &reducer, sync_every, bfloat16);
      });
    ranks.clear();
    return states;
  }

  static bool same(const training::TrainingState& a, const training::TrainingState& b) {
    return a.parameters == b.parameters && a.momentum == b.momentum && a.averaged == b.averaged &&
           a.buffers == b.buffers;
  }

  /// One of two stems away, and the other behind it.
  feed::Plan split() const {
    const int32_t cut = graph_.cut("relu1").layers;
    return {.number = 1,
            .cut = cut,
            .stems_away = 1,
            .here_last = 1,
            .stem_trains = true,
            .stem_parameters = static_cast<uint64_t>(graph_.parameter_range({0, cut}).size),
            .stem_buffers = static_cast<uint64_t>(graph_.buffer_range({0, cut}).size)};
  }

  feed::Plan plan_{.number = 1};
  std::vector<float> loss_scales_;  // by rank, at the start; empty: not in float16
  const uint32_t ranks_;
  const nn::Graph graph_;
  const data::Dataset dataset_ = fakes::three_classes(20);
  const std::unique_ptr<nn::Backend> backend_ = nn::make_reference_backend();
  fakes::RankMeeting meeting_;
};

TEST_F(TrainerRanks, StepTogetherWithoutMore) {
  const auto states = train_together(1);
  for (size_t step = 0; step < kSteps; ++step) EXPECT_TRUE(same(states[0][step], states[1][step]));
}

TEST_F(TrainerRanks, WithGradientsInBFloat16StayEqualAndCloseToFloat32) {
  const auto states = train_together(1, true);
  EXPECT_EQ(meeting_.rounded, static_cast<int>(kSteps)) << "gradients, and nothing else";
  const auto exact = train_together(1);
  EXPECT_EQ(meeting_.rounded, static_cast<int>(kSteps));
  for (size_t step = 0; step < kSteps; ++step) EXPECT_TRUE(same(states[0][step], states[1][step]));
  const auto& rounded = states[0].back().parameters;
  const auto& others = exact[0].back().parameters;
  EXPECT_NE(rounded, others);
  double distance = 0, moved = 0;
  const auto start = fakes::fresh_state(graph_).parameters;
  for (size_t i = 0; i < rounded.size(); ++i) {
    distance += std::pow(rounded[i] - others[i], 2);
    moved += std::pow(others[i] - start[i], 2);
  }
  // Terms and sum are rounded to 8 bits: 2^-8 of a step's length at most, and steps add up.
  EXPECT_LT(std::sqrt(distance), std::sqrt(moved) / 32);
}

TEST_F(TrainerRanks, WithStemsAwayHaveBitwiseTheWeightsThatTheyHaveWithout) {
  for (const bool bfloat16 : {false, true}) {
    plan_ = {.number = 1};
    const auto without = train_together(1, bfloat16);
    plan_ = split();
    const auto with = train_together(1, bfloat16);
    for (size_t step = 0; step < kSteps; ++step)
      EXPECT_TRUE(same(with[0][step], without[0][step])) << step;
  }
}

TEST_F(TrainerRanks, AreTheSameAfterEverySyncAndTheLastStep) {
  const auto states = train_together(3);
  for (size_t step = 0; step < kSteps; ++step)
    EXPECT_EQ(same(states[0][step], states[1][step]), step == 2 || step == 5 || step == 6) << step;
  // Parameters, momentum, averages and running averages, three times; nothing in between.
  EXPECT_EQ(meeting_.sums, 3 * 4);
}

TEST_F(TrainerRanks, TakeTheMeanOfWhatEachMadeAlone) {
  const auto together = train_together(3);
  const auto zero = train(0, nullptr, 1, false);
  const auto one = train(1, nullptr, 1, false);
  EXPECT_TRUE(same(together[0][1], zero[1])) << "before the first mean";
  EXPECT_TRUE(same(together[1][1], one[1]));
  const auto mean = [](std::vector<float> a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = (a[i] + b[i]) * 0.5f;
    return a;
  };
  EXPECT_EQ(together[0][2].parameters, mean(zero[2].parameters, one[2].parameters));
  EXPECT_EQ(together[0][2].momentum, mean(zero[2].momentum, one[2].momentum));
  EXPECT_EQ(together[0][2].averaged, mean(zero[2].averaged, one[2].averaged));
  EXPECT_EQ(together[0][2].buffers, mean(zero[2].buffers, one[2].buffers));
}

// Each comes upon numbers that are too large by itself.
TEST_F(TrainerRanks, InFloat16HaveTheLeastLossScaleOfAllAfterASync) {
  loss_scales_ = {1024, 256};
  const auto states = train_together(3);
  EXPECT_EQ(states[0][1].loss_scale.value, 1024) << "before the first mean";
  for (const auto& one : states) {
    EXPECT_EQ(one[2].loss_scale.value, 256);
    EXPECT_EQ(one[2].loss_scale.good_steps, 3);
  }
}

class RanksWithFrozenLayers : public TrainerRanks {
 protected:
  RanksWithFrozenLayers() : TrainerRanks(3, "relu1") {}
};

// A third of three times a float is often another one.
TEST_F(RanksWithFrozenLayers, LeaveThemBitwiseAsTheyWere) {
  const auto start = fakes::fresh_state(graph_);
  const auto end = train_together(3).front().back();
  const nn::Segment layers{0, graph_.cut("relu1").layers};
  const auto frozen = static_cast<size_t>(graph_.parameter_range(layers).size);
  const auto head = [frozen](const std::vector<float>& values) {
    return std::vector<float>(values.begin(), values.begin() + static_cast<ptrdiff_t>(frozen));
  };
  EXPECT_EQ(head(end.parameters), head(start.parameters));
  EXPECT_NE(end.parameters, start.parameters);
  EXPECT_EQ(end.buffers, start.buffers);
}

}  // namespace
}  // namespace outrigger
