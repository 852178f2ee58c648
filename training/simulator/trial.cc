#include "training/simulator/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

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

/// The mean step. Steps often come in a pattern of some, which a window with soft edges takes for
/// what it is wherever it begins.
double steady_seconds(std::span<const SimulatedStep> steps) {
  double sum = 0;
  double weights = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(steps.size());
    const double weight = std::pow(std::sin(std::numbers::pi * place), 2);  // Hann's
    sum += weight * steps[i].seconds;
    weights += weight;
  }
  return sum / weights;
}

/// No longer than this on average, for `enough` steps of it.
double simulated_seconds(const SimulatedCluster& cluster, const JobCosts& job, const Choice& choice,
                         uint64_t steps, double enough) {
  const uint64_t begun = steps / 4;  // which lived on what was begun at once
  constexpr uint64_t kSure = 4;      // further ones
  double seconds = 0;                // of these
  const auto is_longer = [&](const std::vector<SimulatedStep>& until_now) {
    if (until_now.size() <= begun) return false;
    seconds += until_now.back().seconds;
    const uint64_t counted = until_now.size() - begun;
    return counted >= kSure && seconds > enough * static_cast<double>(counted);
  };
  const auto result =
      simulate(job, cluster, {.steps = steps, .jitter = 0, .fixed = choice, .enough = is_longer});
  return steady_seconds(std::span(result.steps).subspan(begun));
}

double simulated_seconds(const JobCosts& job, const ServerRates& server,
                         std::span<const WorkerRates> workers, const Choice& choice, uint64_t steps,
                         double enough) {
  // With nobody to run its stems, as when the last worker has left, a plan cannot be simulated.
  const double told = predict(job, server, workers, choice).seconds;
  if (!std::isfinite(told)) return told;
  // What is kept for the server's own worker nobody else makes, and what that made ahead, while it
  // waited for the first pixels of others, lasts for longer than a trial.
  const double own = choice.local * server.decode;
  // Where stems take much longer than the step, the server makes them before they come, until one
  // must be waited for: a plan that lives on that is not what it says.
  const double least = std::max(own, choice.away == 0 ? 0 : told / 2);
  if (least > enough) return least;
  SimulatedCluster cluster{server, {}};
  for (const WorkerRates& rates : workers) cluster.workers.push_back({.name = "", .rates = rates});
  return std::max(least, simulated_seconds(cluster, job, choice, steps, enough));
}

/// Of the slowest rank.
double simulated_seconds(const Situation& in, const Choice& choice, uint64_t steps, double enough) {
  double slowest = simulated_seconds(in.job, in.server, in.workers, choice, steps, enough);
  for (const RankRates& rank : in.others) {
    if (slowest > enough || !std::isfinite(slowest)) break;
    slowest = std::max(slowest,
                       simulated_seconds(in.job, rank.server, rank.workers, choice, steps, enough));
  }
  return slowest;
}

}  // namespace

Trial by_simulation(const JobCosts& job, uint64_t length) {
  const size_t most = kMicroBatchesASearch / (steps_of(job) * job.micro_batches);
  if (most < kFewestTrials) return by_model();
  const auto of = [](uint64_t steps) -> Trial::Seconds {
    return [steps](const Situation& in, const Choice& choice) {
      return simulated_seconds(in, choice, steps, std::numeric_limits<double>::infinity());
    };
  };
  const uint64_t steps = length * steps_of(job);
  constexpr uint64_t kLonger = 2;
  return {.seconds = of(steps),
          .most = std::min<size_t>(most, 20),
          .longer = of(kLonger * steps),
          .thorough = length > 1,
          .within = [steps](const Situation& in, const Choice& choice, double enough) {
            return simulated_seconds(in, choice, steps, enough);
          }};
}

}  // namespace outrigger::training
