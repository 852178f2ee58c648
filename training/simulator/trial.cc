#include "training/simulator/trial.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "training/simulator/cluster.h"

namespace outrigger::training {
namespace {

/// A trial is of so many micro-batches, or steps where that is more; a third of it, until what was
/// begun at once has ended, does not count.
constexpr uint64_t kMicroBatches = 120;
constexpr uint64_t kFewestSteps = 12;

/// Simulating so many takes about 25 ms.
constexpr size_t kMicroBatchesASearch = 3000;
constexpr size_t kFewestTrials = 6;

uint64_t steps_of(const JobCosts& job) {
  return std::max(kFewestSteps, kMicroBatches / job.micro_batches);
}

/// The mean step from `from` on. Steps often come in a pattern of some, which a window with soft
/// edges takes for what it is wherever it begins.
double steady_seconds(const SimulationResult& result, uint64_t from) {
  const uint64_t count = result.steps.size() - from;
  double sum = 0;
  double weights = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double weight = std::pow(std::sin(std::numbers::pi * place), 2);  // Hann's
    sum += weight * result.steps[from + i].seconds;
    weights += weight;
  }
  return sum / weights;
}

double simulated_seconds(const JobCosts& job, const ServerRates& server,
                         std::span<const WorkerRates> workers, const Choice& choice,
                         uint64_t steps) {
  // With nobody to run its stems, as when the last worker has left, a plan cannot be simulated.
  const double told = predict(job, server, workers, choice).seconds;
  if (!std::isfinite(told)) return told;
  SimulatedCluster cluster{server, {}};
  for (const WorkerRates& rates : workers) cluster.workers.push_back({.name = "", .rates = rates});
  const auto result = simulate(job, cluster, {.steps = steps, .jitter = 0, .fixed = choice});
  const double seconds = steady_seconds(result, steps / 4);
  // What is kept for the server's own worker nobody else makes, and what that made ahead, while it
  // waited for the first pixels of others, lasts for longer than a trial.
  const double own = choice.local * server.decode;
  // Where stems take much longer than the step, the server makes them before they come, until one
  // must be waited for: a plan that lives on that is not what it says.
  return std::max({seconds, own, choice.away == 0 ? 0 : told / 2});
}

/// Of the slowest rank.
double simulated_seconds(const Situation& in, const Choice& choice, uint64_t steps) {
  double slowest = simulated_seconds(in.job, in.server, in.workers, choice, steps);
  for (const RankRates& rank : in.others) {
    if (!std::isfinite(slowest)) break;
    slowest =
        std::max(slowest, simulated_seconds(in.job, rank.server, rank.workers, choice, steps));
  }
  return slowest;
}

}  // namespace

Trial by_simulation(const JobCosts& job, uint64_t length) {
  const size_t most = kMicroBatchesASearch / (steps_of(job) * job.micro_batches);
  if (most < kFewestTrials) return by_model();
  const auto of = [](uint64_t steps) -> Trial::Seconds {
    return [steps](const Situation& in, const Choice& choice) {
      return simulated_seconds(in, choice, steps);
    };
  };
  const uint64_t steps = length * steps_of(job);
  constexpr uint64_t kLonger = 2;
  return {of(steps), std::min<size_t>(most, 20), of(kLonger * steps), length > 1};
}

}  // namespace outrigger::training
