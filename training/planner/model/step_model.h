#pragma once

#include <span>
#include <string>

#include "training/planner/model/costs.h"

namespace outrigger::training {

/// What bounds a step.
enum class Bound : uint8_t { kDevice, kDecode, kStem, kLink };
const char* to_string(Bound bound);

struct Prediction {
  double seconds = 0;  // of a step; infinite where the choice cannot be
  double device = 0;   // of these, seconds in which the device works
  Bound bound = Bound::kDevice;
  double local_input = 0;  // share of the micro-batches cut at 0 that the server decodes itself
};

/// The time of one step, by list scheduling (Graham, 1969) of its pieces over device, workers and
/// links, in the order of the real step: weights go out, each stem goes to the worker that will
/// have its result at the server first, the device takes micro-batches in index order, those with
/// their stem here first, and stem gradients come back. Forward passes of stale stems run ahead of
/// the step; frozen stems run ahead and go to whoever has time. Then the step is stretched until
/// everyone's spare time decodes M micro-batches: the server's own worker those that the choice
/// keeps local, and more where remote ones leave it leases. The planner, `outrigger plan` and the
/// simulator use this one function.
Prediction predict(const JobCosts& job, const ServerRates& server,
                   std::span<const WorkerRates> workers, const Choice& choice);

/// How many of the M - away others the server's own worker best makes the pixels of, for a cut and
/// a number of stems away, and the prediction with so many; the least number among equals.
struct LocalInput {
  uint32_t local = 0;
  Prediction prediction;
};
LocalInput best_local_input(const JobCosts& job, const ServerRates& server,
                            std::span<const WorkerRates> workers, const Choice& choice);

}  // namespace outrigger::training
