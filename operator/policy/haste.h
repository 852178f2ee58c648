#pragma once

#include <cstddef>

#include "common/clock.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Whether all that a plan would change in the status are numbers of pods, which move with every
/// pod: no decision rests on them and nobody is told of them by an event, so they may be written
/// together with those that follow.
bool only_counts(const api::TrainingJobStatus& before, const Plan& made);

/// For how long what a job's pods and other children tell is gathered before the job is looked at:
/// longer where many jobs wait for that already, so that the first look at each comes before the
/// next ones at others, and a look finds more to write at once.
Duration gathering_time(size_t jobs_that_wait);

}  // namespace outrigger::controller
