#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "feed/stall.h"
#include "training/planner/model/costs.h"
#include "training/planner/planner.h"

/// What the simulator is told and what it tells. Seconds and bytes, as in planner/model/costs.h.
namespace outrigger::training {

/// What becomes of a machine, once.
struct RateChange {
  uint64_t step = 0;
  double speed = 1;  // of its cores, against before
  double link = 1;   // of its link
};
/// The rates behind it.
ServerRates changed(ServerRates rates, const RateChange& change);
WorkerRates changed(WorkerRates rates, const RateChange& change);

/// A worker, from the step at which it joins; it may change its speed once, and leave.
struct SimulatedWorker {
  std::string name;
  WorkerRates rates;
  uint64_t joins = 0;  // at this step
  std::optional<uint64_t> leaves;
  std::optional<RateChange> change;
};

struct SimulatedCluster {
  ServerRates server;
  std::vector<SimulatedWorker> workers;
  std::optional<RateChange> change;  // of the server
};

struct SimulatedStep {
  double seconds = 0;
  double device = 0;  // of these, the device worked on micro-batches
  Choice choice;
  uint64_t workers = 0;     // remote ones joined when it began
  feed::StallTimes stalls;  // what the device waited for
  double local = 0;         // share of the pixels that the server decoded itself
};

struct SimulationOptions {
  uint64_t steps = 200;
  uint64_t seed = 1;
  /// Every piece of work takes its time times 1 ± this, evenly spread.
  double jitter = 0.05;
  PlannerOptions planner;
  std::optional<Choice> fixed;  // this plan throughout; absent: the planner's
  /// What the planner takes the job to cost, with the same cuts; absent: what it does.
  std::optional<JobCosts> believed = std::nullopt;
  /// Whether that is enough: asked after each step, and no further one is run; absent: never.
  std::function<bool(const std::vector<SimulatedStep>&)> enough = nullptr;
};

struct SimulatedMove {
  uint64_t step = 0;
  Choice choice;
  std::string reason;
};

struct SimulationResult {
  std::vector<SimulatedStep> steps;
  std::vector<SimulatedMove> moves;
  std::vector<uint64_t> micro_batches;  // forward results, by worker of the cluster
  uint64_t second_leases = 0;

  /// Mean seconds of the steps [from, to).
  double mean_seconds(uint64_t from, uint64_t to) const;
  /// The step time that `percent` of the steps [from, end) stay below.
  double percentile(double percent, uint64_t from) const;
};

/// Runs the job's steps on the described machines in virtual time: the real coordinator with its
/// ledger, leases and second leases, and the real planner; workers, links and the device take the
/// time that the costs say. Same arguments, same result. Throws InvalidInput where the fixed plan
/// cannot be run.
SimulationResult simulate(const JobCosts& job, const SimulatedCluster& cluster,
                          const SimulationOptions& options);

}  // namespace outrigger::training
