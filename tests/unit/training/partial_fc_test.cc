#include "training/trainer/partial_fc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "host_engine.h"
#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "tests/fakes/simulation.h"
#include "tests/fakes/small_job.h"
#include "tests/fakes/thread_reducer.h"
#include "training/trainer/trainer.h"

/// A classifier that ranks share out, against the one that every rank has.
namespace outrigger {
namespace {

constexpr int64_t kFaces = 4;         // of a micro-batch
constexpr uint32_t kFaceBatches = 6;  // micro-batches of a step, over all ranks
constexpr uint64_t kFaceSteps = 5;
constexpr int64_t kWidth = 4;

nn::Graph faces_graph(int64_t people) {
  nn::GraphBuilder builder("faces", {6, 6, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 3, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("relu1", nn::Relu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = kWidth});
  builder.add("bn2", nn::BatchNorm{});
  builder.add("head", nn::ArcFace{people, 0.3f, 8});
  return builder.build();
}

struct FaceRun {
  uint32_t ranks = 1;
  std::optional<double> sample_rate;  // absent: every rank has all classes
  std::optional<double> clip;
  uint64_t steps = kFaceSteps;
  bool on_devices = false;  // each rank's own, which keep the network's arrays
  bool devices_join = false;
  std::string cut = "Input";
  uint32_t away = 0;  // of each rank's micro-batches
};

class PartialFcRanks : public testing::Test {
 protected:
  struct Outcome {
    training::TrainingState state;
    std::vector<training::StepReport> reports;
  };

  feed::Plan plan(const FaceRun& run) const {
    const int cut = graph_.cut(run.cut).layers;
    return {.number = 1,
            .cut = cut,
            .stems_away = run.away,
            .stem_trains = cut > 0,
            .stem_parameters = static_cast<uint64_t>(graph_.parameter_range({0, cut}).size),
            .stem_buffers = static_cast<uint64_t>(graph_.buffer_range({0, cut}).size)};
  }

  Outcome train_rank(const FaceRun& run, training::Reducer* reducer,
                     const training::TrainingState& from,
                     nn::cuda::testing::HostRanks* devices = nullptr) const {
    const uint32_t rank = reducer == nullptr ? 0 : reducer->rank();
    const uint32_t mine = kFaceBatches / run.ranks;
    training::TrainerOptions options;
    options.device = {.micro_batch = kFaces, .seed = 9};
    options.micro_batches = mine;
    options.total_steps = kFaceSteps;
    options.optimizer = {.momentum = 0.9f, .weight_decay = 0.01f};
    options.learning_rate = [](uint64_t) { return 0.05f; };
    options.clip_gradient_norm = run.clip;
    options.average_decay = 0.9f;
    if (run.sample_rate) options.partial_fc = {.sample_rate = *run.sample_rate};
    fakes::SimulationOptions play;
    play.plans = {plan(run)};
    fakes::Simulation simulation(world(rank, mine, from.step), play, nullptr);
    ThreadPool threads(1);
    const auto device = nn::cuda::testing::make_host_backend(run.devices_join ? devices : nullptr);
    training::Trainer trainer(options, graph_, run.on_devices ? *device : *backend_, threads,
                              simulation, simulation, from, reducer);
    Outcome outcome;
    while (trainer.counters().step < run.steps) outcome.reports.push_back(trainer.step());
    trainer.gather_state();
    outcome.state = trainer.state();
    return outcome;
  }

  /// Of each rank.
  std::vector<Outcome> train(const FaceRun& run, const training::TrainingState& from) const {
    if (run.ranks == 1) return {train_rank(run, nullptr, from)};
    fakes::RankMeeting meeting(run.ranks);
    nn::cuda::testing::HostRanks devices(static_cast<int>(run.ranks));
    std::vector<Outcome> outcomes(run.ranks);
    std::vector<std::jthread> ranks;
    for (uint32_t rank = 0; rank < run.ranks; ++rank)
      ranks.emplace_back([&, rank] {
        fakes::ThreadReducer reducer(meeting, rank);
        outcomes[rank] = train_rank(run, &reducer, from, &devices);
      });
    ranks.clear();
    return outcomes;
  }
  std::vector<Outcome> train(const FaceRun& run) const { return train(run, start_); }

  fakes::Simulation::World world(uint32_t rank, uint32_t mine, uint64_t step) const {
    fakes::Simulation::World world;
    world.graph = &graph_;
    world.backend = backend_.get();
    world.dataset = &dataset_;
    world.agent = {.leases = 2, .micro_batch = kFaces, .seed = 9};
    world.coordinator.incarnation = 1;
    world.coordinator.first_step = step;
    world.coordinator.total_steps = kFaceSteps;
    world.coordinator.micro_batches = mine;
    world.coordinator.micro_batch = kFaces;
    world.coordinator.first_micro_batch = rank * mine;
    world.coordinator.all_micro_batches = kFaceBatches;
    world.order = {.seed = 9, .samples = 40};
    return world;
  }

  std::span<const float> weights(const std::vector<float>& arena, int64_t person) const {
    const auto first = static_cast<size_t>(graph_.parameter_range({7, 8}).offset);
    return std::span(arena).subspan(first + static_cast<size_t>(person * kWidth), kWidth);
  }

  static constexpr int64_t kPeople = 41;  // of which the data has three
  const nn::Graph graph_ = faces_graph(kPeople);
  const data::Dataset dataset_ = fakes::three_classes(40);
  const std::unique_ptr<nn::Backend> backend_ = nn::make_reference_backend();
  const training::TrainingState start_ = [this] {
    auto state = fakes::fresh_state(graph_);
    state.averaged = state.parameters;
    return state;
  }();
};

bool same_run(const training::TrainingState& a, const training::TrainingState& b) {
  return a.parameters == b.parameters && a.momentum == b.momentum && a.averaged == b.averaged &&
         a.buffers == b.buffers;
}

// Every step rounds anew, and errors grow with the steps; a wrong term is larger by thousands.
void expect_close(const std::vector<float>& a, const std::vector<float>& b, const char* what,
                  double tolerance = 2e-5) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << what << " " << i;
}

TEST_F(PartialFcRanks, TrainOnAllClassesAsEveryRankHavingThemDoes) {
  for (const std::optional<double> clip : {std::optional<double>(), std::optional(0.5)}) {
    for (const uint32_t ranks : {1u, 2u, 3u}) {
      const auto whole = train({.ranks = ranks, .clip = clip});
      const auto shared = train({.ranks = ranks, .sample_rate = 1.0, .clip = clip});
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(same_run(shared[rank].state, shared[0].state)) << rank;
        expect_close(shared[rank].state.parameters, whole[rank].state.parameters, "parameter");
        expect_close(shared[rank].state.momentum, whole[rank].state.momentum, "momentum");
        expect_close(shared[rank].state.averaged, whole[rank].state.averaged, "average");
        for (uint64_t step = 0; step < kFaceSteps; ++step) {
          const auto &mine = shared[rank].reports[step], &theirs = whole[rank].reports[step];
          EXPECT_NEAR(mine.loss, theirs.loss, 1e-5 * theirs.loss);
          EXPECT_EQ(mine.accuracy, theirs.accuracy);
          EXPECT_NEAR(mine.gradient_norm, theirs.gradient_norm, 1e-4 * theirs.gradient_norm);
        }
      }
    }
  }
}

// Norm and clipping are over both parts: what devices have, and the classes, which the host has.
TEST_F(PartialFcRanks, TrainOnDevicesWithArraysOfTheirOwnAsOnTheHost) {
  for (FaceRun run :
       {FaceRun{.ranks = 1}, FaceRun{.ranks = 2}, FaceRun{.ranks = 2, .devices_join = true},
        FaceRun{.ranks = 2, .devices_join = true, .cut = "relu1", .away = 1},
        FaceRun{.ranks = 1, .cut = "relu1", .away = 3}}) {
    SCOPED_TRACE(std::to_string(run.ranks) + " ranks cut at " + run.cut);
    run.sample_rate = 0.5;
    run.clip = 0.5;
    const auto host = train(run);
    run.on_devices = true;
    const auto devices = train(run);
    for (uint32_t rank = 0; rank < run.ranks; ++rank) {
      EXPECT_TRUE(same_run(devices[rank].state, devices[0].state)) << rank;
      expect_close(devices[rank].state.parameters, host[0].state.parameters, "parameter", 1e-3);
      expect_close(devices[rank].state.momentum, host[0].state.momentum, "momentum", 1e-3);
      expect_close(devices[rank].state.averaged, host[0].state.averaged, "average", 1e-3);
      for (uint64_t step = 0; step < kFaceSteps; ++step)
        EXPECT_NEAR(devices[rank].reports[step].gradient_norm, host[0].reports[step].gradient_norm,
                    1e-3 * host[0].reports[step].gradient_norm);
    }
  }
}

TEST_F(PartialFcRanks, StepClassesOfTheSamplesAndSomeOfTheOthersAndLeaveTheRestAlone) {
  // A rank of two has 20 or 21 people, its micro-batches 2 x 4 samples: 8 people at a time.
  const auto ranks = train({.ranks = 2, .sample_rate = 0.1, .steps = 1});
  EXPECT_TRUE(same_run(ranks[0].state, ranks[1].state));
  const auto& state = ranks[0].state;
  int left_alone = 0;
  for (int64_t person = 0; person < kPeople; ++person) {
    const auto now = weights(state.parameters, person), before = weights(start_.parameters, person);
    const auto momentum = weights(state.momentum, person);
    const bool moved = !std::ranges::equal(now, before);
    EXPECT_TRUE(moved || person >= 3) << person;
    left_alone += moved ? 0 : 1;
    const bool has_momentum = std::ranges::any_of(momentum, [](float m) { return m != 0; });
    EXPECT_EQ(has_momentum, moved) << person;
  }
  // 3 micro-batches draw 24 times at most from each rank's.
  EXPECT_GT(left_alone, 0);
  EXPECT_LT(left_alone, kPeople - 8);
  EXPECT_TRUE(std::isfinite(ranks[0].reports[0].loss));
}

TEST_F(PartialFcRanks, DrawTheSameAfterAResumeWithTheSameRanks) {
  const FaceRun run{.ranks = 2, .sample_rate = 0.5};
  const auto truth = train(run);
  FaceRun first = run;
  first.steps = 2;
  const auto stopped = train(first);
  const auto resumed = train(run, stopped[0].state);
  EXPECT_TRUE(same_run(resumed[0].state, truth[0].state));
  EXPECT_TRUE(same_run(resumed[1].state, truth[0].state));
}

TEST_F(PartialFcRanks, GoOnWithAnotherNumberOfRanks) {
  const auto truth = train({.ranks = 1, .sample_rate = 1.0});
  const auto stopped = train({.ranks = 3, .sample_rate = 1.0, .steps = 2});
  const auto resumed = train({.ranks = 2, .sample_rate = 1.0}, stopped[1].state);
  expect_close(resumed[0].state.parameters, truth[0].state.parameters, "parameter");
}

TEST_F(PartialFcRanks, NeedTwoClassesEach) {
  const nn::Graph graph = faces_graph(3);
  fakes::RankMeeting meeting(2);
  fakes::ThreadReducer reducer(meeting, 0);
  ThreadPool threads(1);
  try {
    const training::PartialFc shared({}, graph, *backend_, threads, &reducer);
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("3 classes, and 2 ranks"));
  }
}

}  // namespace
}  // namespace outrigger
