#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/thread_pool.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "training/device.h"

namespace outrigger::gpu_server {

/// What is behind a cut.
struct HeadToTime {
  int32_t cut = 0;
  bool stem_trains = false;  // the gradient at the cut is wanted
};

/// Seconds of a device with arrays of its own, of one micro-batch where as many run as one as the
/// device takes at once.
struct DeviceTimes {
  /// Forward, loss and backward behind each cut that was asked for. Nothing where the device's
  /// memory does not hold that program beside the one of the whole network, which micro-batches
  /// that came as pixels need.
  std::vector<std::optional<double>> heads;
  double whole = 0;      // of the whole network, likewise
  double optimizer = 0;  // of a step
};

/// Times them now, on inputs of zeros, some passes each, by the device's own clock. Leaves nothing
/// on it. `backend` makes residents. Throws nn::cuda::OutOfDeviceMemory where not even the whole
/// network fits beside what is there, and what the backend throws.
DeviceTimes time_device(const nn::Backend& backend, const nn::Graph& graph,
                        const training::DeviceOptions& options, std::span<const HeadToTime> heads,
                        ThreadPool& threads);

}  // namespace outrigger::gpu_server
