#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "training/planner/costs.h"
#include "training/planner/step_model.h"

namespace outrigger::training {

struct PlannerOptions {
  std::optional<size_t> cut;        // the user's, a place in JobCosts::cuts; absent: any
  std::optional<uint32_t> away;     // the user's share, as micro-batches; absent: any
  double least_server_percent = 0;  // of the multiply-adds
  double margin = 0.05;             // a better plan must be so much better
  uint64_t dwell = 10;              // steps between two moves
  uint64_t memory = 200;            // steps for which a measured step time counts
};

/// A plan that the planner wants, and why.
struct Decision {
  Choice choice;
  double predicted = 0;  // seconds of a step
  double present = 0;    // of the plan before
  std::string reason;    // for people
};

/// One row of the table of cuts: the best share of a cut.
struct Candidate {
  Choice choice;
  Prediction prediction;
};

/// The best share of every cut that the options allow and memory holds, in the order of cuts.
std::vector<Candidate> candidates(const JobCosts& job, const PlannerOptions& options,
                                  const ServerRates& server, std::span<const WorkerRates> workers);

/// Decides by what was measured: scores every legal plan with the step model, corrected by how far
/// the model was off for the plan in force; plans that ran lately count with their measured time.
/// Moves only for a gain above the margin, which grows with how far steps spread, and not again
/// within the dwell. Deterministic; no
/// clock. Not thread-safe.
class Planner {
 public:
  Planner(JobCosts job, PlannerOptions options);

  /// What a step of the plan in force took, and how many workers there were: with another number,
  /// measured times are forgotten.
  void measured(uint64_t step, const Choice& plan, double seconds, size_t workers);

  std::optional<Decision> consider(uint64_t step, const ServerRates& server,
                                   std::span<const WorkerRates> workers);

  const JobCosts& job() const { return job_; }
  const Choice& present() const { return present_; }

 private:
  struct Measured {
    double seconds = 0;
    double deviation = 0;  // mean distance of a step from `seconds`
    uint64_t step = 0;
    uint32_t count = 0;
  };
  double estimate(const Candidate& candidate, double bias, uint64_t step) const;
  const Measured* lately(const Choice& choice, uint64_t step) const;

  const JobCosts job_;
  const PlannerOptions options_;
  Choice present_;
  size_t workers_ = 0;
  std::map<Choice, Measured> measured_;
  std::optional<uint64_t> moved_;  // the step of the last move or change of workers
};

}  // namespace outrigger::training
