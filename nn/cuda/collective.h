#pragma once

#include <cstddef>

namespace outrigger::nn::cuda {

/// Sums over the ranks of a job, between their devices. All ranks make the same calls in the same
/// order. Callers hold the engine's `enter()`.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Replaces values on the device by their sums over the ranks: behind what is queued on the
  /// engine so far, beside what will be. Throws RankLost.
  virtual void begin_sum(float* values, size_t count) = 0;
  /// Waits until every sum that was begun is there; what is queued on the engine from now on sees
  /// them. A rank that does not come within the limit, or tells of an error, ends this one's part
  /// too: RankLost, here and in every later call.
  virtual void finish() = 0;
};

}  // namespace outrigger::nn::cuda
