#include "gpu-server/planning/job_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu-server/job/job_options.h"
#include "gpu-server/planning/measured_graph.h"
#include "gpu-server/planning/memory_check.h"
#include "gpu-server/planning/planning.h"
#include "host_engine.h"
#include "nn/cpu/blocks.h"
#include "nn/cuda/errors.h"
#include "nn/resident.h"
#include "tests/unit/api/sample_job.h"
#include "training/planner/model/memory.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

constexpr int64_t kClasses = 4;
constexpr int64_t kFarTooManyClasses = 100'000'000'000;  // no memory holds the weights of all

/// A small net of which two cuts, behind strides, leave half of the work to the server.
api::TrainingJob small_job() {
  const auto result = api::resolve_training_job(
      api::sample_with("model: {name: lenet5}",
                       "model: {layers: ["
                       "{name: conv1, convolution: {channels: 4, kernel: 3, stride: 2}}, "
                       "{name: bn1, batchNorm: {}}, {name: relu1, relu: {}}, "
                       "{name: conv2, convolution: {channels: 8, kernel: 3, stride: 2}}, "
                       "{name: bn2, batchNorm: {}}, {name: relu2, relu: {}}, "
                       "{name: conv3, convolution: {channels: 16, kernel: 3}}, "
                       "{name: conv4, convolution: {channels: 16, kernel: 3}}, "
                       "{name: pool, globalAveragePool: {}}, {name: flat, flatten: {}}, "
                       "{name: fc, linear: {features: 4}}]}") +
      "  split: {minServerPercent: 0}\n");
  ensure(result.errors.empty(), to_string(result.errors).c_str());
  api::TrainingJob job = result.job;
  job.spec.training.batch_size = 16;
  job.spec.training.micro_batch_size = 2;
  return job;
}

/// The same with faces whose classes ranks share out.
api::TrainingJob job_of_faces(double sample_rate) {
  api::TrainingJob job = small_job();
  job.spec.training.loss = api::ArcFace{.partial_fc = api::PartialFc{sample_rate}};
  return job;
}

/// The device of these tests; of one cut it says that there is no memory for what is behind it.
class Cramped final : public nn::Backend {
 public:
  explicit Cramped(std::optional<int32_t> full_at = {}) : full_at_(full_at) {}
  std::string name() const override { return "cramped"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& threads) const override {
    if (options.segment.begin == full_at_) throw nn::cuda::OutOfDeviceMemory("full");
    return device_->compile(graph, options, threads);
  }
  std::unique_ptr<nn::Resident> make_resident(const nn::Graph& graph,
                                              const nn::ResidentOptions& options) const override {
    return device_->make_resident(graph, options);
  }

 private:
  const std::optional<int32_t> full_at_;
  const std::unique_ptr<nn::Backend> device_ = nn::cuda::testing::make_host_backend();
};

class JobCostsOfAGpu : public ::testing::Test {
 protected:
  PlannedDevice measured(const nn::Backend& backend) {
    auto options = trainer_options(job_, graph_, size_, nn::Precision::kFloat32);
    options.device.most_at_once = 2;
    return measured_gpu(backend, options.device, job_, graph_, size_, threads_);
  }

  api::TrainingJob job_ = small_job();
  const nn::Graph graph_ = worker::build_graph(job_, kClasses);
  const RunSize size_{.samples = 160, .total_steps = 30, .batch = 16, .micro_batches = 8};
  ThreadPool threads_{1};
};

TEST(MeasuredDevice, HasTheCoresThatBlocksKeepAtWork) {
  const api::TrainingJob job = small_job();  // micro-batches of two samples
  const nn::Graph graph = worker::build_graph(job, kClasses);
  const RunSize size{.samples = 160, .total_steps = 30, .batch = 16, .micro_batches = 8};
  ThreadPool one(1);
  ThreadPool many(5);
  EXPECT_EQ(measured_device(job, graph, size, one).cores, 1);
  const PlannedDevice device = measured_device(job, graph, size, many);
  EXPECT_EQ(device.cores, 2);
  EXPECT_GT(device.block_samples, 0u);
}

TEST(SizesAtACut, AreThoseThatMeasuringAllCutsFinds) {
  const api::TrainingJob job = small_job();
  const nn::Graph graph = worker::build_graph(job, kClasses);
  const RunSize size{.samples = 160, .total_steps = 30, .batch = 16, .micro_batches = 8};
  ThreadPool threads(1);
  const training::JobCosts all = measure_job(job, graph, size, threads);
  for (const training::CutCosts& cut : all.cuts) {
    const training::JobCosts one = sizes_at(cut.cut, job, graph, size, threads);
    ASSERT_EQ(one.cuts.back().cut, cut.cut);
    EXPECT_LE(one.cuts.size(), 2u);
    const training::Choice there{one.cuts.size() - 1, cut.cut == 0 ? 0u : 3u, 1};
    const auto place = static_cast<size_t>(&cut - all.cuts.data());
    EXPECT_EQ(total(server_memory(one, there, 8)),
              total(server_memory(all, {place, there.away, 1}, 8)))
        << cut.name;
  }
}

TEST(CostsOnCores, AreOfTheClassesThatFacesAreComparedWith) {
  constexpr int64_t kCompared = 100;
  const api::TrainingJob shared = job_of_faces(double{kCompared} / kFarTooManyClasses);
  api::TrainingJob whole = shared;
  whole.spec.training.loss = api::ArcFace{};
  const RunSize size{.samples = 160, .total_steps = 30, .batch = 16, .micro_batches = 8};
  ThreadPool threads(1);
  const training::CutCosts input =
      measure_job(shared, worker::build_graph(shared, kFarTooManyClasses), size, threads)
          .cuts.front();
  const training::CutCosts of_compared =
      measure_job(whole, worker::build_graph(whole, kCompared), size, threads).cuts.front();
  EXPECT_EQ(input.head_kept, of_compared.head_kept);
  EXPECT_EQ(input.head_fixed, of_compared.head_fixed);
}

TEST(CheckOfMemory, MeasuresFacesWithoutTheWeightsOfAll) {
  const api::TrainingJob job = job_of_faces(1e-9);
  const nn::Graph graph = worker::build_graph(job, kFarTooManyClasses);
  const RunSize size{.samples = 160, .total_steps = 30, .batch = 16, .micro_batches = 8};
  ThreadPool threads(1);
  EXPECT_NO_THROW(check_memory_to_measure(job, graph, size, 6e8, threads));
  EXPECT_THROW(check_memory_of_cores(job, graph, size, 6e8, threads), InvalidInput);
}

TEST(CostsOnCores, AreThereForMoreRanksThanClasses) {
  api::TrainingJob job = job_of_faces(1);
  job.spec.server.replicas = kClasses + 1;
  const nn::Graph graph = worker::build_graph(job, kClasses);
  EXPECT_EQ(measured_graph(job, graph).parameter_count(), graph.parameter_count());
}

TEST(CostsOnCores, HaveGradientsOfARanksOwnClasses) {
  api::TrainingJob job = job_of_faces(1);
  job.spec.server.replicas = 4;
  const nn::Graph graph = worker::build_graph(job, 1'000'000);  // nearly all that it has
  EXPECT_NEAR(stepped_part(job, graph), 0.25, 0.01);
  job.spec.training.loss = api::ArcFace{};
  EXPECT_EQ(stepped_part(job, graph), 1);
}

// Only compiled: to run it would take tens of gigabytes.
TEST(CheckOfMemory, RefusesAMicroBatchThatIsFarTooLargeBeforeItRuns) {
  using testing::AllOf;
  using testing::HasSubstr;
  using testing::StartsWith;
  api::TrainingJob job = small_job();
  const nn::Graph graph = worker::build_graph(job, kClasses);
  ThreadPool threads(1);
  constexpr double kMemory = 6e8;
  const auto with = [&](int32_t micro_batch) {
    job.spec.training.batch_size = 1 << 22;
    job.spec.training.micro_batch_size = micro_batch;
    return RunSize{.samples = 160,
                   .total_steps = 30,
                   .batch = 1 << 22,
                   .micro_batches = (1u << 22) / static_cast<uint32_t>(micro_batch)};
  };
  const RunSize size = with(1 << 22);
  const auto refusal = [](const std::string& begin) {
    return testing::ThrowsMessage<InvalidInput>(
        AllOf(StartsWith(begin), HasSubstr("MB on the server, 600 are free; ")));
  };
  EXPECT_THAT([&] { check_memory_of_cores(job, graph, size, kMemory, threads); },
              refusal("cut Input, with which the run begins, needs "));
  EXPECT_THAT([&] { check_memory_to_measure(job, graph, size, kMemory, threads); },
              AllOf(refusal("to measure the job"),
                    testing::ThrowsMessage<InvalidInput>(
                        HasSubstr("; spec.training.microBatchSize: 16384 would fit"))));
  EXPECT_NO_THROW(check_memory_to_measure(job, graph, with(16384), kMemory, threads));
  EXPECT_THROW(check_memory_to_measure(job, graph, with(32768), kMemory, threads), InvalidInput);
}

TEST_F(JobCostsOfAGpu, AreItsOwnTimesAndStemsOnCores) {
  const PlannedDevice device = measured(Cramped());
  EXPECT_EQ(device.cores, 1);
  EXPECT_FALSE(device.shared);
  const training::JobCosts& costs = device.costs;
  ASSERT_GT(costs.cuts.size(), 1u);
  const double whole = costs.cuts.front().head;
  EXPECT_GT(whole, 0);
  EXPECT_GT(costs.optimizer, 0);
  for (const training::CutCosts& cut : costs.cuts) {
    SCOPED_TRACE(cut.name);
    ASSERT_TRUE(cut.device_stem);
    EXPECT_GT(cut.head, 0);
    EXPECT_NEAR(cut.head + *cut.device_stem, whole, 1e-12);
    if (cut.cut == 0) continue;
    EXPECT_GT(cut.stem_forward, 0);
    EXPECT_GT(cut.stem_backward, 0);
    EXPECT_GT(cut.stem_kept, 0);
    EXPECT_EQ(cut.head_kept, 0) << "is not the host's";
  }
  EXPECT_EQ(costs.layers.size(), static_cast<size_t>(costs.cuts.back().cut));
}

TEST_F(JobCostsOfAGpu, AreOfAMicroBatchThoughAFewSamplesTimeAStem) {
  const auto costs_of = [&](uint32_t micro_batch) {
    job_.spec.training.batch_size = static_cast<int>(2 * micro_batch);
    job_.spec.training.micro_batch_size = static_cast<int>(micro_batch);
    const RunSize size{
        .samples = 160, .total_steps = 30, .batch = 2 * micro_batch, .micro_batches = 2};
    const auto options = trainer_options(job_, graph_, size, nn::Precision::kFloat32);
    return measured_gpu(Cramped(), options.device, job_, graph_, size, threads_).costs;
  };
  const training::JobCosts few = costs_of(64);
  const training::JobCosts many = costs_of(512);
  ASSERT_EQ(nn::cpu::samples_to_time(graph_, 512, threads_.size()), 64);
  ASSERT_EQ(few.layers.size(), many.layers.size());
  for (size_t i = 0; i < few.layers.size(); ++i)
    EXPECT_EQ(many.layers[i].kept, 8 * few.layers[i].kept) << few.layers[i].name;
}

TEST_F(JobCostsOfAGpu, HaveWhatCoresComputeAgainOfAStem) {
  job_.spec.training.recompute = api::Recompute::kActivations;
  const training::JobCosts costs = measured(Cramped()).costs;
  for (const training::CutCosts& cut : costs.cuts) {
    double expected = 0;
    for (size_t i = 0; i < static_cast<size_t>(cut.cut); ++i)
      expected += costs.layers[i].forward + costs.layers[i].backward;
    EXPECT_NEAR(cut.stem_backward, expected, 1e-9 * expected) << cut.name;
  }
}

TEST_F(JobCostsOfAGpu, LeaveOutACutThatTheMemoryDoesNotHold) {
  const size_t all = measured(Cramped()).costs.cuts.size();
  const nn::Cut left_out = graph_.cuts()[1];
  const PlannedDevice device = measured(Cramped(left_out.layers));
  EXPECT_EQ(device.costs.cuts.size(), all - 1);
  for (const training::CutCosts& cut : device.costs.cuts) EXPECT_NE(cut.cut, left_out.layers);
}

TEST_F(JobCostsOfAGpu, KeepTheCutThatTheJobNamesButPromiseNothingOfIt) {
  const nn::Cut named = graph_.cuts()[1];
  job_.spec.split.cut = named.name;
  const PlannedDevice device = measured(Cramped(named.layers));
  const auto options = planner_options(job_, graph_, size_, device.costs);
  ASSERT_TRUE(options.cut);
  const training::CutCosts& cut = device.costs.cuts[*options.cut];
  EXPECT_EQ(cut.name, named.name);
  EXPECT_EQ(cut.stem_here(), 0);
}

TEST_F(JobCostsOfAGpu, KeepACutThatTheJobNamesByItsStage) {
  api::TrainingJob job = small_job();
  for (api::LayerSpec& layer : job.spec.model.layers) {
    if (layer.name == "conv2" || layer.name == "bn2" || layer.name == "relu2")
      layer.name = "stage." + layer.name;
  }
  job.spec.split.cut = "stage";
  const nn::Graph graph = worker::build_graph(job, kClasses);
  const nn::Cut named = graph.cut("stage");
  ASSERT_EQ(named.name, "stage.relu2");
  auto device = trainer_options(job, graph, size_, nn::Precision::kFloat32).device;
  device.most_at_once = 2;
  const PlannedDevice planned =
      measured_gpu(Cramped(named.layers), device, job, graph, size_, threads_);
  const auto options = planner_options(job, graph, size_, planned.costs);
  ASSERT_TRUE(options.cut);
  EXPECT_EQ(planned.costs.cuts.at(*options.cut).cut, named.layers);
}

TEST_F(JobCostsOfAGpu, LeaveNoOtherCutToWhoNamesOneThatTheyLack) {
  const nn::Cut left_out = graph_.cuts()[1];
  const PlannedDevice device = measured(Cramped(left_out.layers));
  api::TrainingJob edited = job_;
  edited.spec.split.cut = left_out.name;
  EXPECT_EQ(planner_options(edited, graph_, size_, device.costs).cut, device.costs.cuts.size());
}

TEST_F(JobCostsOfAGpu, ThrowWhereNotEvenTheWholeNetworkFits) {
  EXPECT_THROW(measured(Cramped(0)), nn::cuda::OutOfDeviceMemory);
}

/// A pass of any network has more values than its indexes reach.
class WithoutIndexes final : public nn::Backend {
 public:
  std::string name() const override { return "without indexes"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& /*graph*/,
                                       const nn::ProgramOptions& /*options*/,
                                       ThreadPool& /*threads*/) const override {
    throw InvalidInput("too many values");
  }
  std::unique_ptr<nn::Resident> make_resident(const nn::Graph& graph,
                                              const nn::ResidentOptions& options) const override {
    return device_->make_resident(graph, options);
  }

 private:
  const std::unique_ptr<nn::Backend> device_ = nn::cuda::testing::make_host_backend();
};

TEST_F(JobCostsOfAGpu, AreNoneWhereItCannotBeMeasured) {
  const auto options = trainer_options(job_, graph_, size_, nn::Precision::kFloat32).device;
  const auto costs_on = [&](const nn::Backend& backend) {
    return measured_gpu_if_possible(backend, options, job_, graph_, size_, threads_);
  };
  EXPECT_FALSE(costs_on(Cramped(0)));
  EXPECT_FALSE(costs_on(WithoutIndexes()));
  EXPECT_TRUE(costs_on(Cramped()));
}

TEST_F(JobCostsOfAGpu, AreOfTheClassesThatFacesAreComparedWith) {
  job_ = job_of_faces(1e-9);
  const nn::Graph faces = worker::build_graph(job_, kFarTooManyClasses);
  const auto options = trainer_options(job_, faces, size_, nn::Precision::kFloat32).device;
  const PlannedDevice device = measured_gpu(Cramped(), options, job_, faces, size_, threads_);
  EXPECT_GT(device.costs.cuts.front().head, 0);
}

TEST_F(JobCostsOfAGpu, SayNothingOfAPlanWhoseCutWasLeftOut) {
  const nn::Cut left_out = graph_.cuts()[1];
  Planning planning(job_, graph_, size_, measured(Cramped(left_out.layers)));
  training::StepReport report;
  report.plan.cut = left_out.layers;  // as POST /plan may ask for
  report.took = std::chrono::seconds(1);
  EXPECT_FALSE(planning.after_step(report, {}));
}

/// A device that has half of its work in the first layers, beside workers that run them at once: a
/// planner must find that out from what it is told of steps.
class PlanningOfAGpu : public JobCostsOfAGpu {
 protected:
  PlanningOfAGpu() {
    for (training::CutCosts& cut : device_.costs.cuts) {
      cut.head = cut.cut == 0 ? 0.02 : 0.01;
      cut.device_stem = cut.cut == 0 ? 0 : 0.01;
    }
    device_.costs.optimizer = 0.001;
    const training::CutCosts& deepest = device_.costs.cuts.back();
    WorkerMeasures worker{.name = "w", .cores = 64, .memory = 1e10};
    worker.decode = worker.first_decode = worker.first_work = 1e-5;
    worker.pass_seconds = (deepest.stem_forward + deepest.stem_backward) / 1000;
    worker.bytes_per_second = 1e10;
    rank_.workers.assign(4, worker);
    rank_.local.decode = rank_.local.first_decode = 1e-3;
  }

  /// The plan after some steps that take what they should; a second rank, if there is one, says
  /// every time that it is like `other`.
  feed::Plan plan_beside(Planning& planning, const std::optional<RankMeasures>& other = {}) {
    feed::Plan plan = make_plan(job_, graph_, size_, 1);
    for (uint64_t step = 0; step < 40; ++step) {
      training::StepReport report;
      report.step = step;
      report.plan = plan;
      rank_.busy = 0.001 + 0.01 * (16 - plan.stems_away);
      rank_.plan = plan.number;
      report.took = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(rank_.busy));
      auto proposal = planning.after_step(report, rank_);
      if (other)
        planning.heard(1, {.busy = rank_.busy,
                           .plan = plan.number,
                           .workers = other->workers,
                           .local = other->local});
      if (!proposal) continue;
      proposal->plan.number = plan.number + 1;
      plan = proposal->plan;
      why_ = proposal->reason;
    }
    return plan;
  }

  PlannedDevice device_ = measured(Cramped());
  RankMeasures rank_;
  std::string why_;  // the last plan
};

TEST_F(PlanningOfAGpu, MovesStemsToWorkers) {
  Planning planning(job_, graph_, size_, device_);
  const feed::Plan plan = plan_beside(planning);
  EXPECT_GT(plan.cut, 0);
  EXPECT_GE(plan.stems_away, 6u);
  EXPECT_TRUE(planning.desired_workers());
}

TEST_F(PlanningOfAGpu, MovesNoStemToAWorkerWithoutTheMemory) {
  rank_.workers[1].memory = 1;
  Planning planning(job_, graph_, size_, device_);
  EXPECT_GT(plan_beside(planning).cut, 0);
  EXPECT_THAT(why_, testing::HasSubstr("; 1 workers have too little memory for its stems"));
  for (WorkerMeasures& worker : rank_.workers) worker.memory = 1;
  Planning nobody(job_, graph_, size_, device_);
  EXPECT_EQ(plan_beside(nobody).cut, 0);
}

TEST_F(PlanningOfAGpu, MovesNothingThatAnotherRankHasNobodyFor) {
  job_.spec.server.replicas = 2;
  Planning unheard(job_, graph_, size_, device_);
  EXPECT_EQ(plan_beside(unheard).cut, 0) << "who says nothing may have nobody";
  Planning alone(job_, graph_, size_, device_);
  EXPECT_EQ(plan_beside(alone, RankMeasures{.workers = {}, .local = rank_.local}).cut, 0);
  Planning alike(job_, graph_, size_, device_);
  EXPECT_GT(plan_beside(alike, rank_).cut, 0);
}

TEST_F(PlanningOfAGpu, IsNotHeldUpByAWorkerThatIsGivenNothing) {
  WorkerMeasures idle = rank_.workers[0];  // it runs no stems, say, and all of them are away
  idle.decode = idle.first_decode = idle.first_work = 0;
  idle.stems.clear();
  rank_.workers.push_back(idle);
  for (const double pass : {0.0, 0.5}) {
    rank_.workers.back().pass_seconds = pass;
    Planning planning(job_, graph_, size_, device_);
    EXPECT_GT(plan_beside(planning).cut, 0) << pass;
    EXPECT_TRUE(planning.desired_workers()) << pass;
  }
}

TEST_F(PlanningOfAGpu, SaysNothingOfWorkersBeforeAllHaveShownWhatTheyDo) {
  rank_.workers[0].decode = 0;
  Planning planning(job_, graph_, size_, device_);
  training::StepReport report;
  report.took = std::chrono::seconds(1);
  static_cast<void>(planning.after_step(report, rank_));
  EXPECT_FALSE(planning.desired_workers());
  rank_.workers[0].decode = 1e-5;
  static_cast<void>(planning.after_step(report, rank_));
  EXPECT_TRUE(planning.desired_workers());
}

TEST_F(PlanningOfAGpu, AsksForTheWorkersOfTheRankThatWantsMost) {
  job_.spec.server.replicas = 2;
  Planning alike(job_, graph_, size_, device_);
  plan_beside(alike, rank_);
  RankMeasures slow = rank_;
  slow.local.decode = slow.local.first_decode = 0.05;
  Planning unlike(job_, graph_, size_, device_);
  plan_beside(unlike, slow);
  EXPECT_GT(unlike.desired_workers().value(), alike.desired_workers().value());
}

TEST_F(JobCostsOfAGpu, GoByTheBoundsThatAnEditSets) {
  Planning planning(job_, graph_, size_, measured(Cramped()));
  EXPECT_TRUE(planning.knows(graph_.cuts()[1].layers));
  EXPECT_FALSE(planning.knows(graph_.size()));
  api::SplitSpec split = job_.spec.split;
  split.cut = graph_.cuts()[1].name;
  api::WorkersSpec workers = job_.spec.workers;
  workers.max_replicas = workers.min_replicas = 3;
  planning.change(split, workers);
  training::StepReport report;
  report.took = std::chrono::seconds(1);
  WorkerMeasures worker{.name = "w"};
  worker.decode = 0.01;
  static_cast<void>(planning.after_step(report, {.busy = 1, .workers = {worker}, .local = worker}));
  EXPECT_EQ(planning.desired_workers(), 3u) << "between the new bounds";
}

TEST(StemSpeed, OfStemsThatNoLongerRunFollowsDecoding) {
  training::JobCosts job;
  job.cuts = {{}, {.cut = 3, .stem_forward = 0.1, .stem_backward = 0.2}};
  WorkerMeasures worker{.name = "w"};
  worker.decode = worker.first_work = 0.01;
  worker.stems[3] = {.forward = 0.05, .backward = 0.1, .decode = 0.01};
  EXPECT_NEAR(stem_speed(job, worker), 2, 1e-9);
  worker.decode = 0.04;  // at cut Input since then, and at a quarter of its speed
  const double slower = 2 / std::pow(4, 0.85);
  EXPECT_NEAR(stem_speed(job, worker), slower, 1e-9) << "stems suffer less than decoding";
  worker.decode = 0.11;
  worker.read = 0.07;  // waiting for storage says nothing of stems
  EXPECT_NEAR(stem_speed(job, worker), slower, 1e-9);
  job.cuts.push_back({.cut = 5, .stem_forward = 0.2, .stem_backward = 0.4});
  worker.stems[5] = {.forward = 1, .backward = 2, .decode = 0.04, .weight = 0};
  EXPECT_NEAR(stem_speed(job, worker), slower, 1e-9) << "what does not count any more";
  worker.stems[5].weight = 0.5;
  EXPECT_NEAR(stem_speed(job, worker), (0.3 + 0.3) / (0.3 / slower + 1.5), 1e-9);
  worker.stems.clear();
  worker.pass_seconds = 0.3;
  EXPECT_NEAR(stem_speed(job, worker), slower, 1e-9);
}

}  // namespace
}  // namespace outrigger::gpu_server
