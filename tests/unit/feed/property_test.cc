#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/hash.h"
#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "tests/fakes/simulation.h"
#include "tests/fakes/small_job.h"
#include "training/trainer/trainer.h"

/// The promises of the feed, held before there is a socket: whatever workers do, the same samples
/// in the same order with the same pixels, each slot exactly once, and bitwise the same weights as
/// the local worker alone, whether or not it is remembered what is no image in any slot.
namespace outrigger {
namespace {

using fakes::Simulation;

constexpr int64_t kMicroBatch = 2;
constexpr uint32_t kMicroBatches = 4;
constexpr uint32_t kSamples = 29;  // no multiple of the batch: batches straddle epochs
constexpr uint64_t kSteps = 6;

/// Four layers with weights, with batch norm and dropout, and a cut behind each stage.
nn::Graph tiny_graph() {
  nn::GraphBuilder builder("tiny", {6, 6, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 3, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("relu1", nn::Relu{});
  builder.add("pool1", nn::MaxPool{});
  builder.add("drop1", nn::Dropout{0.25f});
  builder.add("conv2", nn::Convolution{.out_channels = 4, .kernel = 3, .padding = 1, .bias = true});
  builder.add("bn2", nn::BatchNorm{});
  builder.add("relu2", nn::Relu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("drop2", nn::Dropout{0.5f});
  builder.add("fc1", nn::Linear{.out_features = 8});
  builder.add("relu3", nn::Relu{});
  builder.add("fc2", nn::Linear{.out_features = 3});
  return builder.build();
}

struct Outcome {
  std::string weights;  // a hash over parameters, momentum, buffers and averages
  std::vector<feed::AuditItem> audit;
  std::map<uint64_t, uint32_t> replaced;  // slot to what filled it
};

class FeedProperty : public ::testing::Test {
 protected:
  feed::Plan plan(int32_t cut, uint32_t away) const {
    feed::Plan plan;
    plan.number = 1;
    plan.cut = cut;
    plan.stems_away = cut == 0 ? 0 : away;
    plan.local_inputs = (kMicroBatches - plan.stems_away) / 2;
    plan.stem_trains = cut > 0;
    plan.here_last = feed::best_here_last(kMicroBatches, plan.stems_away);
    plan.stem_parameters = static_cast<uint64_t>(graph_.parameter_range({0, cut}).size);
    plan.stem_buffers = static_cast<uint64_t>(graph_.buffer_range({0, cut}).size);
    return plan;
  }

  Simulation::World world(const training::TrainingState& state, uint64_t staleness) const {
    Simulation::World world;
    world.graph = &graph_;
    world.backend = backend_.get();
    world.dataset = &dataset_;
    world.agent = {
        .leases = 2, .micro_batch = kMicroBatch, .precision = nn::Precision::kFloat32, .seed = 9};
    world.coordinator.incarnation = static_cast<uint32_t>(state.incarnation) + 1;
    world.coordinator.first_step = state.step;
    world.coordinator.total_steps = kSteps;
    world.coordinator.micro_batches = kMicroBatches;
    world.coordinator.micro_batch = kMicroBatch;
    world.coordinator.staleness = staleness;
    world.coordinator.max_bad_fraction = 0.5;
    world.coordinator.known_broken = state.bad_samples;
    world.coordinator.set_aside = std::chrono::milliseconds(100);
    world.order = {.seed = 9, .samples = kSamples};
    return world;
  }

  training::TrainerOptions trainer_options(uint64_t staleness) const {
    training::TrainerOptions options;
    options.device = {.micro_batch = kMicroBatch,
                      .precision = nn::Precision::kFloat32,
                      .seed = 9,
                      .label_smoothing = 0.1f};
    options.micro_batches = kMicroBatches;
    options.staleness = staleness;
    options.optimizer = {.momentum = 0.9f, .nesterov = true, .weight_decay = 1e-3f};
    options.learning_rate = [](uint64_t step) { return 0.1f / static_cast<float>(step + 1); };
    options.clip_gradient_norm = 2.0;
    options.average_decay = 0.9f;
    return options;
  }

  /// Trains to the end; where the server dies it is resumed from its last committed step with other
  /// workers.
  Outcome run(fakes::SimulationOptions options, uint64_t staleness,
              fakes::Provoked* provoked = nullptr) {
    Outcome outcome;
    training::TrainingState state = fakes::fresh_state(graph_);
    ThreadPool threads(1);
    while (state.step < kSteps) {
      Simulation simulation(world(state, staleness), options, provoked);
      ++state.incarnation;
      training::Trainer trainer(trainer_options(staleness), graph_, *backend_, threads, simulation,
                                simulation, state);
      try {
        while (trainer.state().step < kSteps) {
          auto report = trainer.step();
          for (auto& item : report.audit) outcome.audit.push_back(std::move(item));
          if (const auto wanted = simulation.wanted_plan()) trainer.set_plan(*wanted);
        }
      } catch (const Cancelled&) {
        if (provoked != nullptr) ++(*provoked)[{"server", "death"}];
        options.server_dies_at.reset();
        options.first_workers = static_cast<int>(options.seed % 4);
        options.seed += 1'000'000;
      }
      for (const auto& one : simulation.coordinator().replacements())
        outcome.replaced[one.slot] = one.by;
      state = trainer.state();
      state.bad_samples = simulation.broken_samples();
    }
    outcome.weights = hash(state);
    return outcome;
  }

  static std::string hash(const training::TrainingState& state) {
    Bytes all;
    for (const auto* values :
         {&state.parameters, &state.momentum, &state.buffers, &state.averaged}) {
      const auto bytes = std::as_bytes(std::span(*values));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return to_hex(sha256(all));
  }

  static void expect_same_samples(const Outcome& truth, const Outcome& outcome, uint64_t seed) {
    ASSERT_EQ(outcome.audit.size(), kSteps * kMicroBatches) << "seed " << seed;
    for (size_t i = 0; i < truth.audit.size(); ++i) {
      ASSERT_EQ(outcome.audit[i].first_slot, i * kMicroBatch) << "seed " << seed;
      ASSERT_EQ(outcome.audit[i].samples, truth.audit[i].samples) << "seed " << seed;
      ASSERT_EQ(outcome.audit[i].pixel_hash, truth.audit[i].pixel_hash) << "seed " << seed;
    }
    ASSERT_EQ(outcome.replaced, truth.replaced) << "seed " << seed;
  }

  std::vector<feed::Plan> all_plans() const {
    std::vector<feed::Plan> plans{plan(0, 0)};
    for (const nn::Cut& cut : graph_.cuts()) {
      if (cut.layers == 0) continue;
      for (uint32_t away = 0; away <= kMicroBatches; ++away)
        plans.push_back(plan(cut.layers, away));
    }
    return plans;
  }

  fakes::SimulationOptions random_options(uint64_t seed) const {
    RandomStream random(seed, RandomUse::kSyntheticData, 5);
    fakes::SimulationOptions options;
    options.seed = seed;
    options.first_workers = static_cast<int>(random.below(5));
    options.faults = random.below(3) == 0 ? 0.0 : 0.03;
    options.slow = random.below(2) == 0 ? 0.0 : 0.01;
    options.duplicates = 0.1;
    options.change_plans = random.below(2) == 0;
    options.plans = all_plans();
    std::swap(options.plans[0],
              options.plans[random.below(static_cast<uint32_t>(options.plans.size()))]);
    if (random.below(3) == 0) options.server_dies_at = random.below(kSteps);
    options.workers_that_only_decode = random.below(4) == 0;
    options.tells_no_images = random.below(2) == 0;
    return options;
  }

  fakes::SimulationOptions alone() const {
    fakes::SimulationOptions options;
    options.first_workers = 0;
    options.plans = {plan(0, 0)};
    options.tells_no_images = false;
    return options;
  }

  const nn::Graph graph_ = tiny_graph();
  const data::Dataset dataset_ = fakes::three_classes(kSamples, true);
  const std::unique_ptr<nn::Backend> backend_ = nn::make_reference_backend();
};

int scenarios() {
  const char* asked = std::getenv("OUTRIGGER_PROPERTY_RUNS");
  return asked == nullptr ? 2000 : std::stoi(asked);
}

TEST_F(FeedProperty,
       AnyWorkersCutsSharesKillsAndResumesGiveBitwiseTheWeightsOfTheLocalWorkerAlone) {
  const Outcome truth = run(alone(), 0);
  fakes::Provoked provoked;
  for (int i = 0; i < scenarios(); ++i) {
    const auto seed = static_cast<uint64_t>(i) + 1;
    const Outcome outcome = run(random_options(seed), 0, &provoked);
    expect_same_samples(truth, outcome, seed);
    ASSERT_EQ(outcome.weights, truth.weights) << "seed " << seed;
  }
  for (const char* state : {"Leased", "Received", "HeadDone"}) {
    for (const char* fault : {"death", "stop", "leave", "late", "duplicate"}) {
      const uint64_t count = provoked[{state, fault}];
      EXPECT_GT(count, 0u) << state << " x " << fault << " was never provoked";
      RecordProperty(std::string(state) + "_" + fault, static_cast<int>(count));
    }
  }
  EXPECT_GT((provoked[{"server", "death"}]), 0u);
}

TEST_F(FeedProperty, WithStalenessTheCutDecidesAndWorkersDoNot) {
  for (const uint64_t staleness : {1ull, 2ull}) {
    fakes::SimulationOptions options = alone();
    options.plans = {plan(graph_.cut("relu2").layers, kMicroBatches)};
    const Outcome truth = run(options, staleness);
    for (int i = 0; i < scenarios() / 10; ++i) {
      fakes::SimulationOptions other = random_options(static_cast<uint64_t>(i) + 50'000);
      other.change_plans = false;
      other.plans = {plan(options.plans[0].cut, static_cast<uint32_t>(i % (kMicroBatches + 1)))};
      const Outcome outcome = run(other, staleness);
      expect_same_samples(truth, outcome, other.seed);
      ASSERT_EQ(outcome.weights, truth.weights)
          << "staleness " << staleness << ", seed " << other.seed;
    }
  }
}

TEST_F(FeedProperty, StalenessChangesTheResult) {
  fakes::SimulationOptions options = alone();
  options.plans = {plan(graph_.cut("relu2").layers, kMicroBatches)};
  EXPECT_NE(run(options, 0).weights, run(options, 1).weights);
}

}  // namespace
}  // namespace outrigger
