#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/exit_codes.h"
#include "api/launch.h"
#include "api/training_job.h"
#include "gpu-server/device/emulated_device.h"
#include "nn/program.h"
#include "telemetry/gpu_metrics.h"
#include "telemetry/metrics.h"
#include "training/trainer/trainer.h"

namespace outrigger::gpu_server {

/// Whether this build can train on GPUs at all.
bool is_built_for_gpus();

/// Whether this server's device is a GPU: as it was told, else where the job asks for GPUs.
bool wants_gpu(const api::Launch& launch, const api::TrainingJob& job);

/// What trains.
struct OpenDevice {
  std::unique_ptr<nn::Backend> backend;
  nn::Precision precision = nn::Precision::kFloat32;  // of what trains on it
  bool is_gpu = false;
  std::string bus_id;                              // of a GPU, where the driver tells
  std::unique_ptr<Emulation> emulation = nullptr;  // what the device emulates; the backend is its
  // What the job will want of it beside training from pixels.
  int64_t evaluates_at_once = 0;  // images; 0: it evaluates nothing
  std::string cut = {};           // a layer; empty: Input, or what the planner finds
  /// Whether it has arrays of its own, beside the host's cores, or acts as if it had.
  bool stands_alone() const { return is_gpu || (emulation && emulation->times.of_gpu()); }
};

/// The server's device; of several GPUs in a pod, the one of this rank. Throws
/// Failure: kNotSupported where the job asks for what this build or device cannot do, kNoDevice
/// where there is no GPU that can be used.
OpenDevice open_device(const api::Launch& launch, const api::TrainingJob& job);

/// How many micro-batches a GPU runs as one: as many as make up kSamplesAtOnce samples, no more
/// than a rank has in a step, and no more than its indexes reach and its memory holds beside the
/// run's arrays and evaluation. A power of two; 1 on the CPU. Tries, and leaves nothing behind.
/// Throws InvalidInput where its indexes do not reach over a single one, and OutOfDeviceMemory
/// where its memory does not hold it.
uint32_t micro_batches_at_once(const OpenDevice& device, const nn::Graph& graph,
                               const training::TrainerOptions& options, ThreadPool& threads);

/// Of the memory that the ranks of a pod may use, so much may be pinned for what comes in: what is
/// pinned nothing else can use for a while.
inline constexpr uint64_t kPinnedShare = 4;

/// What is left free where several micro-batches run as one, in bytes: libraries load kernels when
/// they are first used, recordings of passes and NCCL take some, and another plan's convolutions
/// may want more.
inline constexpr int64_t kSpareMemory = int64_t{512} << 20;

/// Passes over fewer samples leave a large GPU idle between kernels.
inline constexpr int64_t kSamplesAtOnce = 256;

/// A GPU's gauges from now on; null on the CPU and where the driver does not tell.
std::unique_ptr<telemetry::GpuMetrics> watch(const OpenDevice& device, telemetry::Metrics& metrics);

/// Runs `work`, and gives what a GPU throws the exit codes that launchers know, and std::bad_alloc
/// a sentence.
api::ExitCode translate_device_errors(const std::function<api::ExitCode()>& work);

}  // namespace outrigger::gpu_server
