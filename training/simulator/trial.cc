#include "training/simulator/trial.h"

#include <algorithm>
#include <cmath>

#include "training/simulator/cluster.h"

namespace outrigger::training {
namespace {

/// A trial is of so many micro-batches, or steps where that is more; a third of it, until what was
/// begun at once has ended, does not count.
constexpr uint64_t kMicroBatches = 120;
constexpr uint64_t kFewestSteps = 12;

/// Simulating so many takes about 20 ms.
constexpr size_t kMicroBatchesASearch = 2000;
constexpr size_t kFewestTrials = 6;

uint64_t steps_of(const JobCosts& job) {
  return std::max(kFewestSteps, kMicroBatches / job.micro_batches);
}

double simulated_seconds(const Situation& in, const Choice& choice) {
  // With nobody to run its stems, as when the last worker has left, a plan cannot be simulated.
  const double told = predict(in.job, in.server, in.workers, choice).seconds;
  if (!std::isfinite(told)) return told;
  SimulatedCluster cluster{in.server, {}};
  for (const WorkerRates& rates : in.workers)
    cluster.workers.push_back({.name = "", .rates = rates});
  const uint64_t steps = steps_of(in.job);
  const auto result = simulate(in.job, cluster, {.steps = steps, .jitter = 0, .fixed = choice});
  return result.mean_seconds(steps / 3, steps);
}

}  // namespace

Trial by_simulation(const JobCosts& job) {
  const size_t most = kMicroBatchesASearch / (steps_of(job) * job.micro_batches);
  if (most < kFewestTrials) return by_model();
  return {simulated_seconds, std::min<size_t>(most, 20)};
}

}  // namespace outrigger::training
