#include "gpu-server/device/device.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <set>

#include "api/support.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/thread_pool.h"
#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"
#include "nn/graph_builder.h"
#include "nn/resident.h"
#include "nn/scorer.h"
#include "training/chunks.h"
#include "worker/job.h"

namespace outrigger::gpu_server {

bool is_built_for_gpus() { return nn::cuda::is_built(); }

bool wants_gpu(const api::Launch& launch, const api::TrainingJob& job) {
  if (launch.device == api::DeviceChoice::kAuto) return job.spec.server.gpus > 0;
  return launch.device == api::DeviceChoice::kCuda;
}

namespace {

nn::cuda::CudaOptions cuda_options(const api::Launch& launch, const api::TrainingJob& job) {
  nn::cuda::CudaOptions options;
  options.bfloat16 = worker::precision(job) == nn::Precision::kBFloat16;
  options.tensor_float32 = launch.tf32;
  options.deterministic = !launch.nondeterministic;
  options.recompute = job.spec.training.recompute == api::Recompute::kActivations;
  // Beside the run, so that a job that resumes computes as before.
  options.plan_file =
      api::run_directory(job, launch) /
      (launch.rank == 0 ? "gpu-plans.txt" : "gpu-plans-" + std::to_string(launch.rank) + ".txt");
  options.most_pinned =
      available_memory() / kPinnedShare / static_cast<uint64_t>(api::ranks_on_machine(job, launch));
  options.device = launch.rank % static_cast<int>(std::max<int64_t>(1, job.spec.server.gpus));
  return options;
}

// Throws NoDevice.
OpenDevice open_gpu(const nn::cuda::CudaOptions& options, const api::TrainingJob& job) {
  const bool float16 = job.spec.training.precision == api::Precision::kFloat16;
  OpenDevice device{nn::cuda::make_cuda_backend(options),
                    float16 ? nn::Precision::kFloat16 : worker::precision(job), true,
                    nn::cuda::bus_id(options.device)};
  if (job.spec.training.evaluate) device.evaluates_at_once = worker::micro_batch(job);
  const std::string& cut = job.spec.split.cut;
  if (cut != api::kCutAuto && cut != api::kCutInput) device.cut = cut;
  return device;
}

}  // namespace

OpenDevice open_device(const api::Launch& launch, const api::TrainingJob& job) {
  // Who says --device has decided, whatever the job asks of a cluster.
  const bool told = launch.device != api::DeviceChoice::kAuto;
  api::require_supported(job, {.gpu = told || launch.emulate || nn::cuda::is_built()});
  if (launch.emulate) {
    auto emulation = std::make_unique<Emulation>(launch);
    auto backend = make_emulated_device(*emulation);
    return {std::move(backend), worker::precision(job), false, "", std::move(emulation)};
  }
  if (!wants_gpu(launch, job)) {
    if (job.spec.training.precision == api::Precision::kFloat16) {
      throw api::Failure(
          api::ExitCode::kNotSupported,
          "spec.training.precision: Float16 needs a GPU; allowed here are Float32 and "
          "BFloat16");
    }
    return {worker::cpu_backend(job), worker::precision(job)};
  }
  try {
    return open_gpu(cuda_options(launch, job), job);
  } catch (const nn::cuda::NoDevice& error) {
    throw api::Failure(
        nn::cuda::is_built() ? api::ExitCode::kNoDevice : api::ExitCode::kNotSupported,
        error.what());
  }
}

namespace {

/// What a run keeps on a device, taken and given back.
class Trial {
 public:
  Trial(const OpenDevice& device, const nn::Graph& graph, const training::TrainerOptions& options,
        ThreadPool& threads)
      : device_(device),
        graph_(graph),
        trunk_(options.partial_fc ? nn::without_last_layer(graph) : graph),
        options_(options),
        threads_(threads) {}

  /// Throws OutOfDeviceMemory, and InvalidInput where indexes do not reach.
  void take(uint32_t groups) const {
    const training::DeviceOptions& wanted = options_.device;
    const nn::Backend& backend = *device_.backend;
    const auto resident = backend.make_resident(
        trunk_, {options_.optimizer, options_.average_decay, wanted.label_smoothing});
    // As training::Device has it: chunks share what they take.
    const auto space = options_.partial_fc ? nullptr : backend.make_work_space();
    std::vector<Part> parts;
    const auto sizes = training::plan_chunks(options_.micro_batches, groups);
    for (const uint32_t size : std::set(sizes.begin(), sizes.end()))
      parts.push_back(compile(0, size, space));
    if (const int32_t cut = cut_layers(); cut > 0) parts.push_back(compile(cut, groups, space));
    nn::Scorer scorer(
        graph_, backend, threads_,
        {.batch = std::max<int64_t>(1, device_.evaluates_at_once), .precision = wanted.precision});
    if (device_.evaluates_at_once > 0) scorer.prepare();
    const auto free = nn::cuda::free_memory(backend);
    if (groups > 1 && free && *free < kSpareMemory)
      throw nn::cuda::OutOfDeviceMemory(std::to_string(*free >> 20) +
                                        " MiB would be left for what libraries take");
  }

 private:
  struct Part {
    std::unique_ptr<nn::Program> program;
    std::unique_ptr<nn::Weights> weights;
    std::unique_ptr<nn::Tape> tape;
  };
  int32_t cut_layers() const {
    return device_.cut.empty() || options_.partial_fc ? 0 : graph_.cut(device_.cut).layers;
  }
  Part compile(int32_t cut, uint32_t groups, const std::shared_ptr<nn::WorkSpace>& space) const {
    const training::DeviceOptions& wanted = options_.device;
    Part part;
    part.program =
        device_.backend->compile(trunk_,
                                 {.segment = {cut, trunk_.size()},
                                  .batch = wanted.micro_batch * groups,
                                  .precision = wanted.precision,
                                  .mode = nn::Mode::kTraining,
                                  .input_gradient = cut > 0 && !graph_.frozen_before(cut),
                                  .seed = wanted.seed,
                                  .work_space = space,
                                  .groups = groups},
                                 threads_);
    part.weights = part.program->new_weights();
    part.tape = part.program->new_tape();
    return part;
  }

  const OpenDevice& device_;
  const nn::Graph& graph_;
  const nn::Graph trunk_;
  const training::TrainerOptions& options_;
  ThreadPool& threads_;
};

}  // namespace

uint32_t micro_batches_at_once(const OpenDevice& device, const nn::Graph& graph,
                               const training::TrainerOptions& options, ThreadPool& threads) {
  if (!device.stands_alone()) return 1;
  const Trial trial(device, graph, options, threads);
  const auto wanted = std::min<int64_t>(
      options.micro_batches, std::max<int64_t>(1, kSamplesAtOnce / options.device.micro_batch));
  // Classes that ranks share out are stepped by the host, one micro-batch at a time.
  const auto most = options.partial_fc ? 1u : static_cast<uint32_t>(wanted);
  for (uint32_t groups = std::bit_floor(most); groups > 1; groups /= 2) {
    try {
      trial.take(groups);
      return groups;
    } catch (const nn::cuda::OutOfDeviceMemory& error) {
      log::info("{} micro-batches at once do not fit: {}", groups, error.what());
    } catch (const InvalidInput& error) {
      // A pass this large has more values than a GPU's indexes reach.
      log::info("{} micro-batches at once cannot run: {}", groups, error.what());
    }
  }
  trial.take(1);
  return 1;
}

std::unique_ptr<telemetry::GpuMetrics> watch(const OpenDevice& device,
                                             telemetry::Metrics& metrics) {
  if (!device.is_gpu) return nullptr;
  std::string why;
  auto nvml = telemetry::Nvml::load(why);
  if (nvml == nullptr) {
    log::warning("the GPU's load, memory and power stay unknown: {}", why);
    return nullptr;
  }
  return std::make_unique<telemetry::GpuMetrics>(metrics, std::move(nvml), device.bus_id,
                                                 std::chrono::seconds(2));
}

api::ExitCode translate_device_errors(const std::function<api::ExitCode()>& work) {
  try {
    return work();
  } catch (const nn::cuda::OutOfDeviceMemory& error) {
    throw api::Failure(api::ExitCode::kOutOfMemory, error.what());
  } catch (const nn::cuda::RankLost& error) {
    throw api::Failure(api::ExitCode::kPeerLost, error.what());
  } catch (const nn::cuda::DeviceError& error) {
    throw api::Failure(api::ExitCode::kNoDevice, error.what());
  } catch (const std::bad_alloc&) {
    throw api::Failure(api::ExitCode::kOutOfMemory,
                       "the memory of this process does not hold the job: " +
                           std::to_string(free_memory() / 1000000) +
                           " MB are free; a smaller spec.training.microBatchSize, a smaller "
                           "spec.data.image or more "
                           "memory helps");
  }
}

}  // namespace outrigger::gpu_server
