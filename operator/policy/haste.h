#pragma once

#include "operator/plan.h"

namespace outrigger::controller {

/// Whether all that a plan would change in the status are numbers of pods, which move with every
/// pod: no decision rests on them and nobody is told of them by an event, so they may be written
/// together with those that follow.
bool only_counts(const api::TrainingJobStatus& before, const Plan& made);

}  // namespace outrigger::controller
