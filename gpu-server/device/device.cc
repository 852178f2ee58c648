#include "gpu-server/device/device.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "api/support.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/thread_pool.h"
#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"
#include "worker/job.h"

namespace outrigger::gpu_server {

bool is_built_for_gpus() { return nn::cuda::is_built(); }

bool wants_gpu(const api::Launch& launch, const api::TrainingJob& job) {
  if (launch.device == api::DeviceChoice::kAuto) return job.spec.server.gpus > 0;
  return launch.device == api::DeviceChoice::kCuda;
}

OpenDevice open_device(const api::Launch& launch, const api::TrainingJob& job) {
  // Who says --device has decided, whatever the job asks of a cluster.
  const bool told = launch.device != api::DeviceChoice::kAuto;
  api::require_supported(job, {.gpu = told || launch.emulate || nn::cuda::is_built()});
  if (launch.emulate) {
    auto emulation = std::make_unique<Emulation>(launch);
    auto backend = make_emulated_device(*emulation);
    return {std::move(backend), worker::precision(job), false, "", std::move(emulation)};
  }
  const bool float16 = job.spec.training.precision == api::Precision::kFloat16;
  if (!wants_gpu(launch, job)) {
    if (float16) {
      throw api::Failure(
          api::ExitCode::kNotSupported,
          "spec.training.precision: Float16 needs a GPU; allowed here are Float32 and "
          "BFloat16");
    }
    return {worker::cpu_backend(job), worker::precision(job)};
  }
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
      available_memory() / kPinnedShare / static_cast<uint64_t>(api::ranks_per_pod(job.spec));
  options.device = launch.rank % static_cast<int>(std::max<int64_t>(1, job.spec.server.gpus));
  try {
    return {nn::cuda::make_cuda_backend(options),
            float16 ? nn::Precision::kFloat16 : worker::precision(job), true,
            nn::cuda::bus_id(options.device)};
  } catch (const nn::cuda::NoDevice& error) {
    throw api::Failure(
        nn::cuda::is_built() ? api::ExitCode::kNoDevice : api::ExitCode::kNotSupported,
        error.what());
  }
}

namespace {

// What training and evaluation keep on the device. Throws OutOfDeviceMemory.
void try_memory(const nn::Backend& backend, const nn::Graph& graph,
                const training::DeviceOptions& options, uint32_t groups, ThreadPool& threads) {
  const auto resident = backend.make_resident(
      graph, {options.optimizer, options.average_decay, options.label_smoothing});
  nn::ProgramOptions wanted{.segment = graph.whole(),
                            .batch = options.micro_batch,
                            .precision = options.precision,
                            .mode = nn::Mode::kInference,
                            .seed = options.seed};
  const auto evaluation = backend.compile(graph, wanted, threads);
  const auto evaluation_tape = evaluation->new_tape();
  wanted.mode = nn::Mode::kTraining;
  wanted.batch = options.micro_batch * groups;
  wanted.groups = groups;
  const auto training = backend.compile(graph, wanted, threads);
  const auto weights = training->new_weights();
  const auto tape = training->new_tape();
}

}  // namespace

uint32_t micro_batches_at_once(const OpenDevice& device, const nn::Graph& graph,
                               const training::TrainerOptions& options, ThreadPool& threads) {
  if (!device.stands_alone() || options.partial_fc) return 1;
  const auto wanted = std::min<int64_t>(
      options.micro_batches, std::max<int64_t>(1, kSamplesAtOnce / options.device.micro_batch));
  for (uint32_t groups = std::bit_floor(static_cast<uint32_t>(wanted)); groups > 1; groups /= 2) {
    try {
      try_memory(*device.backend, graph, options.device, groups, threads);
      return groups;
    } catch (const nn::cuda::OutOfDeviceMemory& error) {
      log::info("{} micro-batches at once do not fit: {}", groups, error.what());
    } catch (const InvalidInput& error) {
      // A pass this large has more values than a GPU's indexes reach. What is wrong with the job
      // itself is told where a single micro-batch is compiled.
      log::info("{} micro-batches at once cannot run: {}", groups, error.what());
    }
  }
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
  }
}

}  // namespace outrigger::gpu_server
