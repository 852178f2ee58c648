#pragma once

#include <cstddef>

#include "nn/cuda/kernels/kernels.h"

namespace outrigger::nn::cuda {

/// Sums over the ranks of a job, between their devices. All ranks make the same calls in the same
/// order. Callers hold the engine's `enter()`.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Replaces values on the device (kFloat32 or kBFloat16) by their sums over the ranks, the same
  /// bits on all: behind what is queued on the engine so far, beside what will be. Throws RankLost,
  /// and DeviceError where it is this rank's own device or place that fails.
  virtual void begin_sum(Array values, size_t count) = 0;
  /// Waits until every sum that was begun is there; what is queued on the engine from now on sees
  /// them. A rank that does not come within the limit, or tells of an error, ends this one's part
  /// too: RankLost, here and in every later call.
  virtual void finish() = 0;
};

}  // namespace outrigger::nn::cuda
