#pragma once

#include "training/simulator/cluster.h"

/// Drawn jobs and clusters under the planner, beside every plan held fixed.
namespace outrigger::training {

/// Seconds of a step under a plan that is held fixed.
double seconds_fixed(const JobCosts& job, const SimulatedCluster& cluster, const Choice& choice);
/// Runs so many drawn scenarios, from number `first` on, and judges the planner.
void run_scenarios(int first, int count);
/// Prints one of them: every plan, as predicted and as simulated, and how the planner moved.
void show_scenario(int number);

}  // namespace outrigger::training
