#pragma once

#include "training/planner/search.h"

namespace outrigger::training {

/// Trials by simulation: the mean step of a plan held fixed, in virtual time and without jitter,
/// over `length` times the usual number of steps. For jobs of so many micro-batches a step that a
/// search would take too long: by the model.
Trial by_simulation(const JobCosts& job, uint64_t length = 1);

}  // namespace outrigger::training
