#pragma once

#include <filesystem>
#include <map>

#include "training/planner/model/costs.h"
#include "training/simulator/cluster.h"

namespace outrigger::training {

/// Mean seconds of a step under a plan that is held fixed, in virtual time.
double seconds_fixed(const JobCosts& job, const SimulatedCluster& cluster, const Choice& choice);

/// What is found by holding every plan fixed in turn.
struct BestPlan {
  Choice choice;
  double seconds = 0;
  double unsplit = 0;  // at cut Input
};
BestPlan best_of_all(const JobCosts& job, const SimulatedCluster& cluster);

/// Best plans of scenarios by their numbers, kept in a file from run to run: finding one takes
/// a hundred times what the planner does. Holds for one simulator: after a change there, begin
/// another.
class BestPlans {
 public:
  /// Nowhere where `file` is empty. Throws InvalidInput where it cannot be read.
  explicit BestPlans(std::filesystem::path file);
  BestPlan of(int scenario, const JobCosts& job, const SimulatedCluster& cluster);

 private:
  std::filesystem::path file_;
  std::map<int, BestPlan> known_;
};

}  // namespace outrigger::training
