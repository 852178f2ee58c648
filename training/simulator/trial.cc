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

/// A trial is of so many micro-batches, or steps where that is more; a quarter of it, until what
/// was begun at once has ended, does not count.
constexpr uint64_t kMicroBatches = 120;
constexpr uint64_t kFewestSteps = 12;

/// Simulating so many takes 15 to 30 ms, less where many plans are clearly worse than the best.
constexpr size_t kMicroBatchesASearch = 4000;
constexpr size_t kFewestTrials = 6;

uint64_t steps_of(const JobCosts& job) {
  return std::max(kFewestSteps, kMicroBatches / job.micro_batches);
}

/// What a step's seconds count for in the mean of so many. Steps often come in a pattern of some,
/// which a window with soft edges takes for what it is wherever it begins.
std::vector<double> weights_of(uint64_t count) {
  std::vector<double> weights(count);
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    sum += weights[i] = std::pow(std::sin(std::numbers::pi * place), 2);  // Hann's
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// The mean of steps, once so many have begun, as they come, and the least that it can be.
class MeanStep {
 public:
  /// No step takes less than `least`.
  MeanStep(uint64_t begun, uint64_t steps, double least)
      : begun_(begun), weights_(weights_of(steps - begun)), least_(least), seconds_(least) {}
  void add(uint64_t step, double seconds) {
    if (step >= begun_) seconds_ += weights_[step - begun_] * (seconds - least_);
  }
  double seconds() const { return seconds_; }

 private:
  const uint64_t begun_;
  const std::vector<double> weights_;
  const double least_;
  double seconds_;
};

/// Seconds of a step in which the device works.
double device_seconds(const JobCosts& job, const ServerRates& server, const Choice& choice) {
  const CutCosts& cut = job.cuts[choice.cut];
  const double stems = (job.micro_batches - choice.away) * cut.stem_here();
  return (job.micro_batches * cut.head + stems + job.optimizer) / server.cores;
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
  MeanStep mean(steps / 4, steps, device_seconds(job, server, choice));
  static_cast<void>(simulate(job, cluster,
                             {.steps = steps,
                              .jitter = 0,
                              .fixed = choice,
                              .enough = [&](const std::vector<SimulatedStep>& until_now) {
                                mean.add(until_now.size() - 1, until_now.back().seconds);
                                return mean.seconds() > enough;
                              }}));
  return std::max(least, mean.seconds());
}

/// Of the slowest rank.
double simulated_seconds(const Situation& in, const Choice& choice, uint64_t steps, double enough) {
  if (!in.others.empty() && !std::isfinite(predict(in, choice).seconds))
    return std::numeric_limits<double>::infinity();
  double slowest = simulated_seconds(in.job, in.server, in.workers, choice, steps, enough);
  for (const RankRates& rank : in.others) {
    if (slowest > enough) break;
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
