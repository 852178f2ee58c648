#pragma once

#include <limits>
#include <optional>

#include "api/training_job.h"
#include "common/thread_pool.h"
#include "feed/stem_memory.h"
#include "gpu-server/job/job_plan.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "training/device.h"
#include "training/planner/model/costs.h"
#include "training/planner/model/profile.h"

/// What the planner must know of a job and a device before it trains.
namespace outrigger::gpu_server {

/// Times of every layer on this server's cores, which are the device, measured now (two passes over
/// a micro-batch), and sizes on the wire.
training::JobCosts measure_job(const api::TrainingJob& job, const nn::Graph& graph,
                               const RunSize& size, ThreadPool& threads);

/// Sizes, and the memory of the deepest of them, of cut Input and one other, or of cut Input alone,
/// on this server's cores; no times.
training::JobCosts sizes_at(int32_t cut, const api::TrainingJob& job, const nn::Graph& graph,
                            const RunSize& size, ThreadPool& threads);

/// What stems before a cut take in a worker.
feed::StemMemory stem_memory_at(int32_t cut, const api::TrainingJob& job, const nn::Graph& graph,
                                const RunSize& size, ThreadPool& threads);

/// The device that a planner plans for, as far as it is known at the start.
struct PlannedDevice {
  training::JobCosts costs;
  double cores = 1;    // core-seconds of these costs that it does in a second
  bool shared = true;  // with the server's own worker
  /// Bytes that the job may take on the server; `costs` says what it does.
  double memory = std::numeric_limits<double>::infinity();
  uint32_t block_samples = 0;  // as a profile has them
};
/// The server's cores, measured now.
PlannedDevice measured_device(const api::TrainingJob& job, const nn::Graph& graph,
                              const RunSize& size, ThreadPool& threads);
/// A device with arrays of its own, measured now, and what stems take on cores: on those of this
/// server, as on workers. Cuts whose programs do not fit into the device's memory are left out.
/// Throws nn::cuda::OutOfDeviceMemory where there is no room to measure, InvalidInput where a pass
/// has more values than the device's indexes reach.
PlannedDevice measured_gpu(const nn::Backend& backend, const training::DeviceOptions& options,
                           const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                           ThreadPool& threads);
/// The same; nothing, and a warning, where it cannot be measured.
std::optional<PlannedDevice> measured_gpu_if_possible(const nn::Backend& backend,
                                                      const training::DeviceOptions& options,
                                                      const api::TrainingJob& job,
                                                      const nn::Graph& graph, const RunSize& size,
                                                      ThreadPool& threads);
/// As a profile has it. Throws InvalidInput where the profile is of another number of
/// micro-batches.
PlannedDevice emulated_device(const training::Profile& profile, int cores, const RunSize& size);

}  // namespace outrigger::gpu_server
