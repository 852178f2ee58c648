#pragma once

#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// A TrainingJob as the API server has it, with defaults.
struct JobRecord {
  api::TrainingJob job;                 // always has a status
  std::vector<api::FieldError> errors;  // in spec
};

/// Fields of metadata that Kubernetes adds without our knowing are passed over. So is what a newer
/// operator wrote into the status: nobody's job fails for a downgrade.
JobRecord read_job(Json object);
/// The same of a job of which an earlier version was read: where its generation did not change, its
/// spec did not either and is taken from there.
JobRecord read_job_again(Json object, const JobRecord& before);

}  // namespace outrigger::controller
