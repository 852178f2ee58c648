#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "host_engine.h"
#include "nn/cuda/pass_plan.h"
#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "nn/resident.h"
#include "tests/fakes/simulation.h"
#include "tests/fakes/small_job.h"
#include "training/chunks.h"
#include "training/trainer/trainer.h"

/// A trainer whose device keeps weights and gradients itself, beside workers on CPUs: the same run
/// as on the host, but for roundings.
namespace outrigger {
namespace {

using nn::Precision;

constexpr int64_t kMicroBatch = 2;
constexpr uint32_t kMicroBatches = 3;
constexpr uint64_t kSteps = 4;

nn::Graph small_graph() {
  nn::GraphBuilder builder("small", {6, 6, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 3, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("relu1", nn::Relu{});
  builder.add("pool1", nn::MaxPool{});
  builder.add("conv2", nn::Convolution{.out_channels = 4, .kernel = 3, .padding = 1, .bias = true});
  builder.add("bn2", nn::BatchNorm{});
  builder.add("relu2", nn::Relu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  return builder.build();
}

struct Way {
  std::string cut = "Input";
  uint32_t away = 0;
  uint64_t staleness = 0;
  Precision precision = Precision::kFloat32;
  float loss_scale = 65536;
  float learning_rate = 0.1f;
  uint32_t most_at_once = 1;
  bool loss_on_host = false;
  std::shared_ptr<MemorySource> pixel_memory = nullptr;
  bool int8 = false;       // what crosses the cut
  bool keep_int8 = false;  // until the device unpacks it
  std::shared_ptr<MemorySource> received_into = nullptr;
  bool stems_alone = false;  // of the parameters no more than the stem's go out
};

/// A device whose programs each have memory of their own.
class WithoutWorkSpace final : public nn::Backend {
 public:
  explicit WithoutWorkSpace(const nn::Backend& backend) : backend_(backend) {}
  std::string name() const override { return backend_.name(); }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& threads) const override {
    return backend_.compile(graph, options, threads);
  }
  std::unique_ptr<nn::Resident> make_resident(const nn::Graph& graph,
                                              const nn::ResidentOptions& options) const override {
    return backend_.make_resident(graph, options);
  }

 private:
  const nn::Backend& backend_;
};

struct Outcome {
  training::TrainingState state;
  std::vector<double> losses;
  std::vector<bool> skipped;
};

class DeviceTrainer : public ::testing::Test {
 protected:
  training::TrainingState first_state(const Way& way) const {
    auto state = fakes::fresh_state(graph_);
    state.loss_scale.value = way.loss_scale;
    return state;
  }

  // Workers compute on the CPU whatever the device is.
  fakes::Simulation::World world(const Way& way) const {
    fakes::Simulation::World world;
    world.graph = &graph_;
    world.backend = cpu_.get();
    world.dataset = &dataset_;
    world.agent = {.leases = 2,
                   .micro_batch = kMicroBatch,
                   .precision = Precision::kFloat32,
                   .seed = 9,
                   .pixel_memory = way.pixel_memory};
    world.coordinator.incarnation = 1;
    world.coordinator.total_steps = kSteps;
    world.coordinator.micro_batches = kMicroBatches;
    world.coordinator.micro_batch = kMicroBatch;
    world.coordinator.staleness = way.staleness;
    world.order = {.seed = 9, .samples = 20};
    return world;
  }

  feed::Plan plan(const Way& way) const {
    const int cut = graph_.cut(way.cut).layers;
    feed::Plan plan;
    plan.number = 1;
    plan.cut = cut;
    plan.stems_away = way.away;
    plan.stem_trains = cut > 0;
    plan.stem_parameters = static_cast<uint64_t>(graph_.parameter_range({0, cut}).size);
    plan.stem_buffers = static_cast<uint64_t>(graph_.buffer_range({0, cut}).size);
    if (way.int8) plan.activations = plan.gradients = WireFormat::kInt8;
    return plan;
  }

  training::TrainerOptions trainer_options(const Way& way) const {
    training::TrainerOptions options;
    options.device = {.micro_batch = kMicroBatch,
                      .precision = way.precision,
                      .seed = 9,
                      .label_smoothing = 0.1f,
                      .most_at_once = way.most_at_once};
    if (way.loss_on_host) {
      options.device.loss = [](const feed::ReadyMicroBatch& batch, const ConstTensorView& output,
                               const TensorView& gradient) {
        return nn::softmax_cross_entropy(output, batch.labels, 0.1f, gradient);
      };
    }
    options.micro_batches = kMicroBatches;
    options.staleness = way.staleness;
    if (way.stems_alone) options.most_stem_parameters = plan(way).stem_parameters;
    options.optimizer = {.momentum = 0.9f, .nesterov = true, .weight_decay = 1e-3f};
    options.learning_rate = [rate = way.learning_rate](uint64_t) { return rate; };
    options.clip_gradient_norm = 2.0;
    options.average_decay = 0.9f;
    return options;
  }

  Outcome run(const nn::Backend& backend, const Way& way) {
    fakes::SimulationOptions options;
    options.plans = {plan(way)};
    const bool narrow = way.precision == Precision::kBFloat16;
    options.wires = {
        .server = {.activation_type = narrow ? ElementType::kBFloat16 : ElementType::kFloat32,
                   .seed = 9,
                   .keep_int8 = way.keep_int8},
        .worker = {.seed = 9}};
    options.received_into = way.received_into;
    fakes::Simulation simulation(world(way), options, nullptr);
    ThreadPool threads(1);
    training::Trainer trainer(trainer_options(way), graph_, backend, threads, simulation,
                              simulation, first_state(way));
    Outcome outcome;
    while (trainer.counters().step < kSteps) {
      const auto report = trainer.step();
      outcome.losses.push_back(report.loss);
      outcome.skipped.push_back(report.skipped);
    }
    outcome.state = trainer.state();
    return outcome;
  }

  static void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                          double tolerance, const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    double far = 0, length = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      far += std::pow(double{actual[i]} - double{expected[i]}, 2);
      length += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LE(std::sqrt(far), tolerance * std::sqrt(length)) << what;
  }

  static void expect_same_run(const Outcome& actual, const Outcome& expected, double tolerance) {
    for (size_t step = 0; step < kSteps; ++step)
      EXPECT_NEAR(actual.losses[step], expected.losses[step], tolerance) << step;
    expect_near(actual.state.parameters, expected.state.parameters, tolerance, "parameters");
    expect_near(actual.state.momentum, expected.state.momentum, tolerance, "momentum");
    expect_near(actual.state.averaged, expected.state.averaged, tolerance, "averaged");
    expect_near(actual.state.buffers, expected.state.buffers, tolerance, "running averages");
  }

  const nn::Graph graph_ = small_graph();
  const data::Dataset dataset_ = fakes::three_classes(20);
  const std::unique_ptr<nn::Backend> cpu_ = nn::make_reference_backend();
  ThreadPool threads_{1};
  const std::unique_ptr<nn::Backend> device_ = nn::cuda::testing::make_host_backend();
};

TEST_F(DeviceTrainer, TrainsAsOnTheHostWhereverItIsCut) {
  for (const Way& way :
       {Way{}, Way{.cut = "pool1"}, Way{.cut = "pool1", .away = 2}, Way{.cut = "relu2", .away = 3},
        Way{.cut = "pool1", .away = 2, .staleness = 1}}) {
    SCOPED_TRACE(way.cut + ", away " + std::to_string(way.away) + ", staleness " +
                 std::to_string(way.staleness));
    expect_same_run(run(*device_, way), run(*cpu_, way), 1e-3);
  }
}

// Three micro-batches as two and one; each is a group of batch norm still.
TEST_F(DeviceTrainer, TrainsTheSameWithSeveralMicroBatchesAtOnce) {
  for (Way way : {Way{}, Way{.cut = "pool1", .away = 2}, Way{.cut = "pool1", .away = 1},
                  Way{.cut = "relu2", .away = 3}, Way{.cut = "pool1", .away = 1, .staleness = 1}}) {
    SCOPED_TRACE(way.cut + ", away " + std::to_string(way.away) + ", staleness " +
                 std::to_string(way.staleness));
    const Outcome one = run(*device_, way);
    way.most_at_once = 4;
    const Outcome several = run(*device_, way);
    expect_same_run(several, one, 1e-5);
  }
}

// Two and one, with cuts and without, through one tape and one copy of the weights.
TEST_F(DeviceTrainer, TrainsTheSameBitsWhereItsProgramsShareTheirMemory) {
  ASSERT_NE(device_->make_work_space(), nullptr);
  for (Way way :
       {Way{}, Way{.cut = "pool1"}, Way{.cut = "pool1", .away = 1}, Way{.cut = "relu2", .away = 2},
        Way{.cut = "relu2", .away = 3}, Way{.cut = "pool1", .away = 1, .staleness = 1}}) {
    SCOPED_TRACE(way.cut + ", away " + std::to_string(way.away) + ", staleness " +
                 std::to_string(way.staleness));
    way.most_at_once = 2;
    const Outcome shared = run(*device_, way);
    const Outcome apart = run(WithoutWorkSpace(*device_), way);
    EXPECT_EQ(shared.losses, apart.losses);
    EXPECT_EQ(shared.state.parameters, apart.state.parameters);
    EXPECT_EQ(shared.state.momentum, apart.state.momentum);
    EXPECT_EQ(shared.state.buffers, apart.state.buffers);
  }
}

TEST_F(DeviceTrainer, TrainsTheSameBitsWhereOnlyStemsAreFetched) {
  for (const uint64_t staleness : {0, 1}) {
    Way way{.cut = "pool1", .away = 2, .staleness = staleness};
    const Outcome all = run(*device_, way);
    way.stems_alone = true;
    const Outcome stems = run(*device_, way);
    EXPECT_EQ(stems.losses, all.losses);
    EXPECT_EQ(stems.state.parameters, all.state.parameters);
    EXPECT_EQ(stems.state.momentum, all.state.momentum);
    EXPECT_EQ(stems.state.averaged, all.state.averaged);
  }
}

// Each is a whole arena, in memory and in every checkpoint.
TEST_F(DeviceTrainer, ForgetsFormerWeightsThatALessenedStalenessNeedsNoMore) {
  for (const uint64_t staleness : {0, 1, 3}) {
    const Way way{.cut = "pool1", .away = 1, .staleness = staleness};
    auto state = first_state(way);
    state.step = 2;
    state.former_parameters = {{0, state.momentum}, {1, state.parameters}};
    fakes::Simulation simulation(world(way), {.plans = {plan(way)}}, nullptr);
    training::Trainer trainer(trainer_options(way), graph_, *device_, threads_, simulation,
                              simulation, state);
    const auto& kept = trainer.counters().former_parameters;
    EXPECT_EQ(kept.size(), std::min<size_t>(staleness, 2));
    EXPECT_EQ(kept.contains(1), staleness > 0) << "the newest is needed first";
  }
}

// Bit for bit, whoever has the loss and whatever is cut.
TEST_F(DeviceTrainer, TrainsTheSameWhereActivationsAreComputedAgain) {
  ASSERT_FALSE(nn::cuda::choose_pieces(graph_, {.segment = graph_.whole(), .batch = kMicroBatch},
                                       *nn::cuda::testing::make_host_engine())
                   .empty());
  const auto recomputing = nn::cuda::testing::make_host_backend(nullptr, true);
  for (const Way& way :
       {Way{}, Way{.most_at_once = 4}, Way{.loss_on_host = true},
        Way{.cut = "pool1", .away = 2, .most_at_once = 2},
        Way{.cut = "pool1", .away = 2, .staleness = 1}, Way{.cut = "pool1", .loss_on_host = true},
        Way{.precision = Precision::kFloat16, .loss_scale = 1024}}) {
    SCOPED_TRACE(way.cut + ", away " + std::to_string(way.away) + ", staleness " +
                 std::to_string(way.staleness));
    const Outcome kept = run(*device_, way);
    const Outcome again = run(*recomputing, way);
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_EQ(again.state.parameters, kept.state.parameters);
    EXPECT_EQ(again.state.momentum, kept.state.momentum);
    EXPECT_EQ(again.state.buffers, kept.state.buffers);
  }
}

/// Has memory for every other of those who ask.
class HalfOf final : public MemorySource {
 public:
  explicit HalfOf(std::shared_ptr<MemorySource> source) : source_(std::move(source)) {}
  std::shared_ptr<std::byte> acquire(size_t bytes) override {
    return asked_++ % 2 == 0 ? source_->acquire(bytes) : nullptr;
  }

 private:
  const std::shared_ptr<MemorySource> source_;
  size_t asked_ = 0;
};

// The device reads them there when their turn comes, which is late.
TEST_F(DeviceTrainer, TrainsTheSameBitsOnPixelsThatAreInItsOwnKindOfMemory) {
  for (Way way : {Way{}, Way{.most_at_once = 4}, Way{.cut = "pool1", .away = 1, .most_at_once = 2},
                  Way{.cut = "pool1", .away = 1, .staleness = 1}}) {
    SCOPED_TRACE(way.cut + ", at once " + std::to_string(way.most_at_once));
    const Outcome ordinary = run(*device_, way);
    const auto backend = nn::cuda::testing::make_host_backend();
    const auto memory = backend->input_memory();
    for (const std::shared_ptr<MemorySource>& pixel_memory :
         {memory, std::shared_ptr<MemorySource>(std::make_shared<HalfOf>(memory))}) {
      way.pixel_memory = pixel_memory;
      const Outcome pinned = run(*backend, way);
      EXPECT_EQ(pinned.losses, ordinary.losses);
      EXPECT_EQ(pinned.state.parameters, ordinary.state.parameters);
      EXPECT_EQ(pinned.state.buffers, ordinary.state.buffers);
    }
  }
}

TEST_F(DeviceTrainer, TrainsTheSameBitsWhereItUnpacksActivationsItself) {
  for (Way way :
       {Way{.cut = "pool1", .away = 2}, Way{.cut = "pool1", .away = 3, .most_at_once = 4},
        Way{.cut = "relu2", .away = 2, .most_at_once = 2},
        Way{.cut = "flatten", .away = 3, .most_at_once = 2},
        Way{.cut = "pool1", .away = 2, .staleness = 1},
        Way{.cut = "pool1", .away = 2, .precision = Precision::kBFloat16},
        Way{.cut = "pool1", .away = 1, .precision = Precision::kFloat16, .loss_scale = 1024}}) {
    SCOPED_TRACE(way.cut + ", away " + std::to_string(way.away) + ", staleness " +
                 std::to_string(way.staleness));
    way.int8 = true;
    const Outcome by_the_host = run(*device_, way);
    way.keep_int8 = true;
    const auto backend = nn::cuda::testing::make_host_backend();
    const auto memory = backend->input_memory();
    for (const std::shared_ptr<MemorySource>& received_into :
         {std::shared_ptr<MemorySource>(), memory,
          std::shared_ptr<MemorySource>(std::make_shared<HalfOf>(memory))}) {
      way.received_into = received_into;
      const Outcome by_the_device = run(*backend, way);
      EXPECT_EQ(by_the_device.losses, by_the_host.losses);
      EXPECT_EQ(by_the_device.state.parameters, by_the_host.state.parameters);
      EXPECT_EQ(by_the_device.state.momentum, by_the_host.state.momentum);
      EXPECT_EQ(by_the_device.state.buffers, by_the_host.state.buffers);
    }
  }
}

// Of which one says that it is packed and the plan cuts nothing.
TEST_F(DeviceTrainer, RefusesActivationsThatItsProgramDoesNotUnpack) {
  Way way{.cut = "pool1", .away = 2, .int8 = true, .keep_int8 = true};
  EXPECT_THROW(run(*cpu_, way), InvalidInput) << "the host's programs do not";
  training::Device device(trainer_options(way).device, graph_, *device_, threads_);
  device.set_cut(0, false);
  const std::vector<float> averages(static_cast<size_t>(graph_.buffer_count()));
  device.load({}, {}, averages);
  const auto pixels = std::make_shared<Tensor>(ElementType::kUint8, Shape{kMicroBatch, 6, 6, 1});
  const feed::ReadyMicroBatch batch{
      .tensor = pixels,
      .scales = std::make_shared<Tensor>(ElementType::kFloat32, Shape{1}),
      .slots = {0, 1},
      .labels = {0, 1}};
  EXPECT_THROW(device.stage(std::span(&batch, 1)), InvalidInput);
}

TEST(Chunks, ArePowersOfTwoAndTheLargestFirst) {
  using training::plan_chunks;
  EXPECT_EQ(plan_chunks(8, 4), (std::vector<uint32_t>{4, 4}));
  EXPECT_EQ(plan_chunks(7, 4), (std::vector<uint32_t>{4, 2, 1}));
  EXPECT_EQ(plan_chunks(7, 3), (std::vector<uint32_t>{2, 2, 2, 1}));
  EXPECT_EQ(plan_chunks(3, 1), (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_TRUE(plan_chunks(0, 4).empty());
}

TEST_F(DeviceTrainer, TrainsInFloat16AsNearAsItsDigits) {
  for (const Way& way :
       {Way{.precision = Precision::kFloat16, .loss_scale = 1024},
        Way{.cut = "pool1", .away = 1, .precision = Precision::kFloat16, .loss_scale = 1024}}) {
    Way exact = way;
    exact.precision = Precision::kFloat32;
    const Outcome actual = run(*device_, way);
    expect_same_run(actual, run(*cpu_, exact), 0.1);
    EXPECT_EQ(actual.state.loss_scale.good_steps, static_cast<int64_t>(kSteps));
    EXPECT_THAT(actual.skipped, ::testing::Each(false));
  }
}

TEST_F(DeviceTrainer, LeavesOutStepsWhoseFloat16GradientsAreTooLargeAndScalesLess) {
  const Way way{.precision = Precision::kFloat16, .loss_scale = 0x1p24f};
  const Outcome outcome = run(*device_, way);
  ASSERT_TRUE(outcome.skipped[0]);
  EXPECT_LT(outcome.state.loss_scale.value, 0x1p24f);
  const auto all =
      static_cast<size_t>(std::count(outcome.skipped.begin(), outcome.skipped.end(), true));
  EXPECT_EQ(outcome.state.loss_scale.value, std::ldexp(1.0f, 24 - static_cast<int>(all)));
  if (all == kSteps) {
    EXPECT_EQ(outcome.state.parameters, first_state(way).parameters);
  }
}

TEST_F(DeviceTrainer, EndsWhereWeightsAreNoNumbersAnyMore) {
  const Way way{.learning_rate = std::numeric_limits<float>::infinity()};
  EXPECT_THROW(run(*device_, way), training::NumericalError);
  EXPECT_THROW(run(*cpu_, way), training::NumericalError);
}

}  // namespace
}  // namespace outrigger
