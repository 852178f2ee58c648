#include "training/planner/desired_workers.h"

#include <algorithm>
#include <vector>

#include "training/planner/model/step_model.h"

namespace outrigger::training {
namespace {

/// What is gained by less than this is not worth a worker.
constexpr double kNoGain = 0.02;

/// A worker that does what one of them does in the mean.
WorkerRates average(std::span<const WorkerRates> workers) {
  WorkerRates mean{.stem_speed = 0,
                   .decode = 0,
                   .bytes_per_second = 0,
                   .stems = false,
                   .memory = 0,
                   .leases = 0};
  const auto count = static_cast<double>(workers.size());
  for (const WorkerRates& one : workers) {
    mean.stem_speed += one.stem_speed / count;
    mean.decode += 1 / std::max(one.decode, 1e-12) / count;
    mean.bytes_per_second += one.bytes_per_second / count;
    mean.latency += one.latency / count;
    mean.stems |= one.stems;
    mean.memory += one.memory / count;
  }
  mean.decode = 1 / mean.decode;
  mean.leases = static_cast<uint32_t>(leases_of(workers) / workers.size());
  return mean;
}

/// The best plan's step with so many workers.
Prediction best_with(uint32_t count, const JobCosts& job, const PlannerOptions& options,
                     const ServerRates& server, const WorkerRates& worker) {
  const std::vector<WorkerRates> workers(count, worker);
  const auto all = candidates(job, options, server, workers);
  if (all.empty()) return predict(job, server, workers, {});
  return std::ranges::min_element(all, {},
                                  [](const Candidate& one) { return one.prediction.seconds; })
      ->prediction;
}

/// All small numbers, then steps of an eighth: who wants 100 workers is served by 104.
std::vector<uint32_t> numbers_between(uint32_t least, uint32_t most) {
  std::vector<uint32_t> numbers;
  for (uint32_t n = least; n < most; n += std::max(1u, n / 8)) numbers.push_back(n);
  numbers.push_back(most);
  return numbers;
}

}  // namespace

uint32_t desired_workers(const JobCosts& job, const PlannerOptions& options,
                         const ServerRates& server, std::span<const WorkerRates> workers,
                         const ScaleBounds& bounds) {
  const WorkerRates worker = average(workers);
  const auto numbers = numbers_between(bounds.least, std::max(bounds.least, bounds.most));
  std::vector<double> seconds;
  for (const uint32_t n : numbers) {
    const Prediction step = best_with(n, job, options, server, worker);
    if (step.device >= (1 - bounds.target_stall) * step.seconds) return n;
    seconds.push_back(step.seconds);
  }
  const double fastest = std::ranges::min(seconds);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (seconds[i] <= (1 + kNoGain) * fastest) return numbers[i];
  }
  return numbers.back();
}

}  // namespace outrigger::training
