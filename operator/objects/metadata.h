#pragma once

#include <optional>
#include <string>

#include "api/run_policy.h"
#include "api/training_job.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// What a child of the job bears: labels by which we find it, and the job as its owner, so that it
/// goes when the job goes.
Json child_metadata(const api::TrainingJob& job, const std::string& name,
                    std::optional<api::Role> role = std::nullopt);

/// Labels that select all pods of this life of the job, and of one role.
Json pod_selector(const api::TrainingJob& job, std::optional<api::Role> role = std::nullopt);

}  // namespace outrigger::controller
