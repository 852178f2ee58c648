#pragma once

#include "bench/plan/exhaustive.h"

/// Drawn jobs and clusters under the planner, beside every plan held fixed.
namespace outrigger::training {

/// Runs so many drawn scenarios, from number `first` on, and judges the planner.
void run_scenarios(int first, int count, BestPlans& best_plans);
/// Prints one of them: every plan, as predicted and as simulated, and how the planner moved.
void show_scenario(int number);

}  // namespace outrigger::training
