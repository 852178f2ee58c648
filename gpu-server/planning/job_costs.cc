#include "gpu-server/planning/job_costs.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/log.h"
#include "gpu-server/device/device_times.h"
#include "gpu-server/job/job_options.h"
#include "gpu-server/planning/measured_graph.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/blocks.h"
#include "nn/cuda/errors.h"
#include "nn/recompute.h"
#include "training/planner/model/memory.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

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

bool recomputes(const api::TrainingJob& job) {
  return job.spec.training.recompute == api::Recompute::kActivations;
}

double forward_seconds(const std::vector<nn::cpu::LayerCost>& layers, int32_t begin, int32_t end) {
  double sum = 0;
  for (int32_t i = begin; i < end; ++i) sum += layers[static_cast<size_t>(i)].forward_seconds;
  return sum;
}

/// What cores compute again in the backward pass: of a stem all that trains, since other
/// micro-batches came between.
void add_stem_again(training::CutCosts& cut, const nn::Graph& graph,
                    const std::vector<nn::cpu::LayerCost>& layers) {
  const int begin = nn::recompute_begin(graph, {0, cut.cut});
  cut.stem_backward += forward_seconds(layers, begin, cut.cut);
}

/// Likewise of a head all but the last piece.
void add_head_again(training::CutCosts& cut, const nn::Graph& graph,
                    const std::vector<nn::cpu::LayerCost>& layers) {
  const nn::Segment head{cut.cut, graph.size()};
  const auto pieces = nn::recompute_cuts(graph, head);
  if (pieces.empty()) return;
  cut.head += forward_seconds(layers, nn::recompute_begin(graph, head), pieces.back());
}

struct SegmentMemory {
  double kept = 0;
  double fixed = 0;
};
nn::ProgramMemory program_memory(const nn::ProgramOptions& options, const api::TrainingJob& job,
                                 const nn::Graph& graph, ThreadPool& threads) {
  try {
    return worker::cpu_backend(job)->compile(graph, options, threads)->memory();
  } catch (const std::bad_alloc&) {
    if (options.batch == 1) throw;
    // Not even its arrays can be had: about twice what half of it takes.
    nn::ProgramOptions half = options;
    half.batch = (options.batch + 1) / 2;
    nn::ProgramMemory memory = program_memory(half, job, graph, threads);
    memory.kept *= 2;
    memory.work_space *= 2;
    return memory;
  }
}

/// What a segment takes on cores.
SegmentMemory memory_of(nn::Segment segment, bool input_gradient, const api::TrainingJob& job,
                        const nn::Graph& graph, ThreadPool& threads) {
  const nn::ProgramMemory memory = program_memory({.segment = segment,
                                                   .batch = worker::micro_batch(job),
                                                   .precision = worker::precision(job),
                                                   .input_gradient = input_gradient},
                                                  job, graph, threads);
  return {static_cast<double>(memory.kept),
          static_cast<double>(memory.weights + memory.work_space)};
}

void add_stem_memory(training::CutCosts& cut, const api::TrainingJob& job, const nn::Graph& graph,
                     ThreadPool& threads) {
  if (cut.cut == 0) return;
  const SegmentMemory memory = memory_of({0, cut.cut}, false, job, graph, threads);
  cut.stem_kept = memory.kept;
  cut.stem_fixed = memory.fixed;
}

void add_head_memory(training::CutCosts& cut, const api::TrainingJob& job, const nn::Graph& graph,
                     ThreadPool& threads) {
  const SegmentMemory memory =
      memory_of({cut.cut, graph.size()}, cut.cut > 0 && cut.trains, job, graph, threads);
  cut.head_kept = memory.kept;
  cut.head_fixed = memory.fixed;
}

/// Of a micro-batch, from a pass of so many samples.
std::vector<nn::cpu::LayerCost> profile_on_cores(nn::Segment segment, int64_t samples,
                                                 const api::TrainingJob& job,
                                                 const nn::Graph& graph, ThreadPool& threads) {
  auto layers = nn::cpu::profile(
      graph, {.segment = segment, .batch = samples, .precision = worker::precision(job)}, threads,
      1);
  const int64_t whole = worker::micro_batch(job);
  const double of_all = static_cast<double>(whole) / static_cast<double>(samples);
  for (nn::cpu::LayerCost& layer : layers) {
    layer.forward_seconds *= of_all;
    layer.backward_seconds *= of_all;
    layer.kept_bytes = layer.kept_bytes * static_cast<size_t>(whole) / static_cast<size_t>(samples);
  }
  return layers;
}

std::vector<training::LayerCosts> layer_costs(const nn::Graph& graph,
                                              const std::vector<nn::cpu::LayerCost>& layers) {
  std::vector<training::LayerCosts> costs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const nn::cpu::LayerCost& layer = layers[i];
    const auto at = static_cast<int32_t>(i);
    costs.push_back(
        {layer.layer, layer.forward_seconds, layer.backward_seconds,
         static_cast<double>(layer.kept_bytes),
         sizeof(float) * static_cast<double>(graph.parameter_range({at, at + 1}).size)});
  }
  return costs;
}

/// What needs no measuring: sizes.
training::JobCosts sizes_of(const api::TrainingJob& job, const nn::Graph& graph,
                            const RunSize& size) {
  training::JobCosts costs;
  costs.parameters = sizeof(float) * static_cast<double>(graph.parameter_count());
  // Weights and momentum; the device's gradients, their sum, and what went out to workers.
  costs.copies = 2 + 3 * stepped_part(job, graph) +
                 static_cast<double>(job.spec.training.staleness) +
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
    costs.cuts.push_back(cut);
  }
  return costs;
}

/// The job's own cut, by whichever of its names, in layers; 0 where it leaves that open.
int32_t named_cut(const api::TrainingJob& job, const nn::Graph& graph) {
  const std::string& cut = job.spec.split.cut;
  return cut == api::kCutAuto ? 0 : graph.cut(cut).layers;
}

/// Stems as on cores, all else as on the device. A cut that does not fit there is left out, but for
/// `named`: at that nothing is gained.
void add_device_times(training::JobCosts& costs, const DeviceTimes& times, int32_t named) {
  costs.optimizer = times.optimizer;
  std::vector<training::CutCosts> fitting;
  for (size_t i = 0; i < costs.cuts.size(); ++i) {
    training::CutCosts cut = costs.cuts[i];
    const std::optional<double> head = i == 0 ? times.whole : times.heads[i - 1];
    if (!head && cut.cut != named) continue;
    cut.head = std::min(times.whole, head.value_or(times.whole));
    cut.device_stem = times.whole - cut.head;
    fitting.push_back(std::move(cut));
  }
  costs.cuts = std::move(fitting);
}

}  // namespace

training::JobCosts measure_job(const api::TrainingJob& job, const nn::Graph& graph,
                               const RunSize& size, ThreadPool& threads) {
  const nn::Graph measured = measured_graph(job, graph);
  const auto layers =
      profile_on_cores(measured.whole(), worker::micro_batch(job), job, measured, threads);
  training::JobCosts costs = sizes_of(job, graph, size);
  costs.layers = layer_costs(graph, layers);
  costs.optimizer = measure_optimizer(job, measured, size) * threads.size();
  for (training::CutCosts& cut : costs.cuts) {
    add_head_memory(cut, job, measured, threads);
    add_stem_memory(cut, job, graph, threads);
    add_times(cut, layers);
    if (!recomputes(job)) continue;
    add_stem_again(cut, graph, layers);
    add_head_again(cut, graph, layers);
  }
  return costs;
}

training::JobCosts sizes_at(int32_t cut, const api::TrainingJob& job, const nn::Graph& graph,
                            const RunSize& size, ThreadPool& threads) {
  training::JobCosts costs = sizes_of(job, graph, size);
  std::erase_if(costs.cuts, [cut](const auto& one) { return one.cut != 0 && one.cut != cut; });
  add_head_memory(costs.cuts.back(), job, measured_graph(job, graph), threads);
  add_stem_memory(costs.cuts.back(), job, graph, threads);
  return costs;
}

feed::StemMemory stem_memory_at(int32_t cut, const api::TrainingJob& job, const nn::Graph& graph,
                                const RunSize& size, ThreadPool& threads) {
  training::JobCosts costs = sizes_of(job, graph, size);
  const auto found = std::ranges::find(costs.cuts, cut, &training::CutCosts::cut);
  if (cut == 0 || found == costs.cuts.end()) return {};
  add_stem_memory(*found, job, graph, threads);
  return training::stem_memory(costs, *found);
}

PlannedDevice measured_device(const api::TrainingJob& job, const nn::Graph& graph,
                              const RunSize& size, ThreadPool& threads) {
  PlannedDevice device{.costs = measure_job(job, graph, size, threads),
                       .block_samples = static_cast<uint32_t>(nn::cpu::block_samples(graph))};
  device.cores = training::cores_at_work(
      device.block_samples, static_cast<uint32_t>(worker::micro_batch(job)), threads.size());
  device.costs.optimizer *= device.cores / threads.size();  // takes as long however many wait
  return device;
}

PlannedDevice measured_gpu(const nn::Backend& backend, const training::DeviceOptions& options,
                           const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                           ThreadPool& threads) {
  training::JobCosts costs = sizes_of(job, graph, size);
  const int32_t deepest = costs.cuts.back().cut;
  std::vector<nn::cpu::LayerCost> layers;
  if (deepest > 0) {
    const int64_t samples =
        nn::cpu::samples_to_time(graph, worker::micro_batch(job), threads.size());
    layers = profile_on_cores({0, deepest}, samples, job, graph, threads);
  }
  costs.layers = layer_costs(graph, layers);
  std::vector<HeadToTime> heads;
  for (training::CutCosts& cut : costs.cuts) {
    if (cut.cut == 0) continue;
    add_stem_memory(cut, job, graph, threads);
    add_times(cut, layers);
    if (recomputes(job)) add_stem_again(cut, graph, layers);  // the device's times have its own
    heads.push_back({cut.cut, cut.trains});
  }
  add_device_times(costs, time_device(backend, measured_graph(job, graph), options, heads, threads),
                   named_cut(job, graph));
  return {.costs = std::move(costs),
          .shared = false,
          .block_samples = static_cast<uint32_t>(nn::cpu::block_samples(graph))};
}

std::optional<PlannedDevice> measured_gpu_if_possible(const nn::Backend& backend,
                                                      const training::DeviceOptions& options,
                                                      const api::TrainingJob& job,
                                                      const nn::Graph& graph, const RunSize& size,
                                                      ThreadPool& threads) {
  const auto warn = [](const Error& error) {
    log::warning(
        "the plan stays as it starts, or as POST /plan says, and nobody is told how many workers "
        "are wanted: the GPU has no room to measure what plans cost: {}",
        error.what());
  };
  try {
    return measured_gpu(backend, options, job, graph, size, threads);
  } catch (const nn::cuda::OutOfDeviceMemory& error) {
    warn(error);
  } catch (const InvalidInput& error) {
    warn(error);
  }
  return std::nullopt;
}

PlannedDevice emulated_device(const training::Profile& profile, int cores, const RunSize& size) {
  if (profile.costs.micro_batches != size.micro_batches)
    throw InvalidInput("the profile to emulate is of " +
                       std::to_string(profile.costs.micro_batches) +
                       " micro-batches a step, the job has " + std::to_string(size.micro_batches));
  PlannedDevice device{profile.costs, static_cast<double>(cores), false};
  device.costs.link_work = {};  // what a run measures has it in it
  return device;
}

}  // namespace outrigger::gpu_server
