#include "gpu-server/planning.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "common/memory.h"
#include "nn/cpu/backend.h"
#include "nn/recompute.h"
#include "training/simulator/trial.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

double bytes_an_element(WireFormat format) {
  switch (format) {
    case WireFormat::kBFloat16:
      return 2;
    case WireFormat::kInt8:
      return 1;
    default:
      return 4;
  }
}

/// Sums over layers before and behind every cut.
void add_times(training::CutCosts& cut, const std::vector<nn::cpu::LayerCost>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& layer = layers[i];
    if (static_cast<int32_t>(i) < cut.cut) {
      cut.stem_forward += layer.forward_seconds;
      if (cut.trains) cut.stem_backward += layer.backward_seconds;
    } else {
      cut.head += layer.forward_seconds + layer.backward_seconds;
    }
  }
}

/// Seconds of the optimizer's part of a step, which runs on one core while the others wait.
double measure_optimizer(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size) {
  const auto count = static_cast<size_t>(graph.parameter_count());
  const std::vector<float> gradients(count);
  std::vector<float> momentum(count);
  std::vector<float> parameters(count);
  const nn::SgdOptions sgd = trainer_options(job, graph, size, worker::precision(job)).optimizer;
  nn::sgd_step(graph, sgd, 0, gradients, momentum, parameters);  // fills the caches
  const auto begin = std::chrono::steady_clock::now();
  nn::sgd_step(graph, sgd, 0, gradients, momentum, parameters);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What is computed again in the backward pass: of a stem all, since other micro-batches came
/// between; of a head all but the last piece.
void add_recomputing(training::CutCosts& cut, const nn::Graph& graph,
                     const std::vector<nn::cpu::LayerCost>& layers) {
  const auto forward = [&](int32_t begin, int32_t end) {
    double sum = 0;
    for (int32_t i = begin; i < end; ++i) sum += layers[static_cast<size_t>(i)].forward_seconds;
    return sum;
  };
  if (cut.trains) cut.stem_backward += forward(0, cut.cut);
  const auto pieces = nn::recompute_cuts(graph, {cut.cut, graph.size()});
  if (!pieces.empty()) cut.head += forward(cut.cut, pieces.back());
}

/// What stem and head take where the graph is cut so.
void add_memory(training::CutCosts& cut, const api::TrainingJob& job, const nn::Graph& graph,
                ThreadPool& threads) {
  const auto backend = worker::cpu_backend(job);
  nn::ProgramOptions options{.batch = worker::micro_batch(job),
                             .precision = worker::precision(job)};
  const auto measure = [&](double& kept, double& fixed) {
    const nn::ProgramMemory memory = backend->compile(graph, options, threads)->memory();
    kept = static_cast<double>(memory.kept);
    fixed = static_cast<double>(memory.weights + memory.work_space);
  };
  options.segment = {cut.cut, graph.size()};
  options.input_gradient = cut.cut > 0 && cut.trains;
  measure(cut.head_kept, cut.head_fixed);
  if (cut.cut == 0) return;
  options.segment = {0, cut.cut};
  options.input_gradient = false;
  measure(cut.stem_kept, cut.stem_fixed);
}

uint32_t share_of(const api::TrainingJob& job, const RunSize& size) {
  return static_cast<uint32_t>(
      std::lround(*job.spec.split.share_percent / 100.0 * size.micro_batches));
}

}  // namespace

training::JobCosts measure_job(const api::TrainingJob& job, const nn::Graph& graph,
                               const RunSize& size, ThreadPool& threads) {
  const auto layers = nn::cpu::profile(graph,
                                       {.segment = graph.whole(),
                                        .batch = worker::micro_batch(job),
                                        .precision = worker::precision(job)},
                                       threads, 1);
  training::JobCosts costs;
  for (int i = 0; i < graph.size(); ++i) {
    const auto& layer = layers[static_cast<size_t>(i)];
    costs.layers.push_back(
        {layer.layer, layer.forward_seconds, layer.backward_seconds,
         static_cast<double>(layer.kept_bytes),
         sizeof(float) * static_cast<double>(graph.parameter_range({i, i + 1}).size)});
  }
  costs.optimizer = measure_optimizer(job, graph, size) * threads.size();
  costs.parameters = sizeof(float) * static_cast<double>(graph.parameter_count());
  // Weights, momentum, the device's gradients, their sum, and what went out to workers.
  costs.copies = 5 + static_cast<double>(job.spec.training.staleness) +
                 (job.spec.training.average_weights ? 1 : 0);
  costs.micro_batches = size.micro_batches;
  costs.staleness = static_cast<uint64_t>(job.spec.training.staleness);
  const auto m = static_cast<double>(worker::micro_batch(job));
  costs.pixels = m * static_cast<double>(element_count(graph.input()));
  const int32_t deepest = deepest_cut(job, graph);
  for (const nn::Cut& one : graph.cuts()) {
    if (one.layers > deepest) break;
    feed::Plan plan;
    plan.cut = one.layers;
    complete_plan(plan, graph);
    set_wires(plan, job);
    training::CutCosts cut{.cut = one.layers, .name = one.name, .trains = plan.stem_trains};
    const double elements = m * static_cast<double>(element_count(one.shape));
    cut.activations = elements * bytes_an_element(plan.activations);
    if (cut.trains) cut.gradients = elements * bytes_an_element(plan.gradients);
    cut.weights = 4.0 * static_cast<double>(plan.stem_parameters + plan.stem_buffers);
    cut.server_percent =
        100.0 * (1.0 - static_cast<double>(graph.multiply_adds({0, one.layers})) /
                           static_cast<double>(graph.multiply_adds(graph.whole())));
    cut.crossing = elements * static_cast<double>(element_size(worker::activation_type(job)));
    add_memory(cut, job, graph, threads);
    add_times(cut, layers);
    if (job.spec.training.recompute == api::Recompute::kActivations)
      add_recomputing(cut, graph, layers);
    costs.cuts.push_back(cut);
  }
  return costs;
}

training::PlannerOptions planner_options(const api::TrainingJob& job, const nn::Graph& graph,
                                         const RunSize& size) {
  const api::SplitSpec& split = job.spec.split;
  training::PlannerOptions options;
  options.least_server_percent = split.min_server_percent;
  if (split.max_bytes_per_second)
    options.most_bytes_per_second = static_cast<double>(*split.max_bytes_per_second);
  if (split.cut != api::kCutAuto) {
    const int32_t layers = graph.cut(split.cut).layers;
    const auto cuts = graph.cuts();
    options.cut =
        static_cast<size_t>(std::ranges::find(cuts, layers, &nn::Cut::layers) - cuts.begin());
  }
  if (split.share_percent) options.away = share_of(job, size);
  return options;
}

// Of one rank: each has workers of its own.
training::ScaleBounds scale_bounds(const api::TrainingJob& job) {
  const api::WorkersSpec& workers = job.spec.workers;
  const int ranks = api::rank_count(job.spec);
  const auto each = [&](int count) { return static_cast<uint32_t>((count + ranks - 1) / ranks); };
  training::ScaleBounds bounds;
  bounds.least = each(workers.min_replicas);
  bounds.most = each(workers.max_replicas.value_or(
      std::max(workers.replicas, ranks * static_cast<int>(bounds.most))));
  if (workers.autoscaling) bounds.target_stall = workers.autoscaling->target_stall_percent / 100.0;
  return bounds;
}

PlannedDevice measured_device(const api::TrainingJob& job, const nn::Graph& graph,
                              const RunSize& size, ThreadPool& threads) {
  return {measure_job(job, graph, size, threads), static_cast<double>(threads.size()), true};
}

PlannedDevice emulated_device(const training::Profile& profile, int cores, const RunSize& size) {
  if (profile.costs.micro_batches != size.micro_batches)
    throw InvalidInput("the profile to emulate is of " +
                       std::to_string(profile.costs.micro_batches) +
                       " micro-batches a step, the job has " + std::to_string(size.micro_batches));
  return {profile.costs, static_cast<double>(cores), false};
}

Planning::Planning(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                   int threads, const PlannedDevice& device)
    : job_(job),
      graph_(graph),
      options_(planner_options(job, graph, size)),
      planner_(device.costs, options_, training::by_simulation(device.costs)),
      deepest_(deepest_cut(job, graph)),
      threads_(threads) {
  server_.cores = device.cores;
  server_.shared = device.shared;
  const uint64_t limit = available_memory();
  server_.memory = static_cast<double>(limit - std::min(limit, used_memory()));
}

training::Choice Planning::choice_of(const feed::Plan& plan) const {
  const auto& cuts = planner_.job().cuts;
  const auto found = std::ranges::find(cuts, plan.cut, &training::CutCosts::cut);
  return {static_cast<size_t>(found - cuts.begin()), plan.stems_away, plan.local_inputs};
}

/// Core-seconds that the device spends in a step.
double Planning::device_work(const training::Choice& choice) const {
  const training::JobCosts& job = planner_.job();
  const training::CutCosts& cut = job.cuts[choice.cut];
  return job.optimizer + cut.head * job.micro_batches +
         (cut.stem_forward + cut.stem_backward) * (job.micro_batches - choice.away);
}

void Planning::note_device(const training::StepReport& report, const training::Choice& choice) {
  const double busy =
      to_seconds(report.took - report.waited_for_input - report.waited_for_gradients);
  if (busy <= 0) return;
  const double cores = device_work(choice) / busy;
  server_.cores = device_measured_ ? 0.8 * server_.cores + 0.2 * cores : cores;
  device_measured_ = true;
}

double Planning::stem_speed(const WorkerMeasures& worker) const {
  double work = 0;
  double took = 0;
  for (const training::CutCosts& cut : planner_.job().cuts) {
    const auto ran = worker.stems.find(cut.cut);
    if (ran == worker.stems.end() || ran->second.forward == 0) continue;
    work += cut.stem_forward + (ran->second.backward > 0 ? cut.stem_backward : 0);
    took += ran->second.forward + ran->second.backward;
  }
  if (took > 0) return work / took;
  if (worker.pass_seconds <= 0) return 0;
  const training::CutCosts& deepest = planner_.job().cuts.back();
  const double then = (deepest.stem_forward + deepest.stem_backward) / worker.pass_seconds;
  // What decoding tells of how the machine has changed since.
  return then * worker.first_decode / worker.decode;
}

training::WorkerRates Planning::rates_of(const WorkerMeasures& worker) const {
  training::WorkerRates rates;
  rates.decode = worker.decode;
  rates.stem_speed = stem_speed(worker);
  rates.stems = rates.stem_speed > 0;
  if (worker.bytes_per_second > 0) rates.bytes_per_second = worker.bytes_per_second;
  rates.latency = worker.latency;
  if (worker.memory > 0) rates.memory = worker.memory;
  return rates;
}

bool Planning::rate(std::span<const WorkerMeasures> workers, const WorkerMeasures& local) {
  workers_.clear();
  double core_seconds = local.decode * threads_;  // to decode a micro-batch
  for (const WorkerMeasures& worker : workers) {
    if (worker.decode == 0) return false;
    workers_.push_back(rates_of(worker));
    const double its = worker.decode * worker.cores;
    if (local.decode == 0) core_seconds = core_seconds == 0 ? its : std::min(core_seconds, its);
  }
  server_.decode = core_seconds / threads_;
  return core_seconds > 0;
}

std::optional<uint32_t> Planning::desired_workers() const {
  if (workers_.empty()) return std::nullopt;
  return static_cast<uint32_t>(api::rank_count(job_.spec)) *
         training::desired_workers(planner_.job(), options_, server_, workers_, scale_bounds(job_));
}

std::optional<Planning::Proposal> Planning::after_step(const training::StepReport& report,
                                                       std::span<const WorkerMeasures> workers,
                                                       const WorkerMeasures& local) {
  const training::Choice present = choice_of(report.plan);
  note_device(report, present);
  planner_.measured(report.step, present, to_seconds(report.took), workers.size());
  if (!rate(workers, local)) return std::nullopt;
  const auto decision = planner_.consider(report.step, server_, workers_);
  if (!decision) return std::nullopt;
  Proposal proposal;
  proposal.plan.cut = planner_.job().cuts[decision->choice.cut].cut;
  proposal.plan.stems_away = decision->choice.away;
  proposal.plan.local_inputs = decision->choice.local;
  complete_plan(proposal.plan, graph_);
  set_wires(proposal.plan, job_);
  proposal.reason = decision->reason;
  return proposal;
}

}  // namespace outrigger::gpu_server
