#pragma once

#include <string>
#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// A TrainingJob as the API server has it, with defaults.
struct JobRecord {
  api::TrainingJob job;                   // always has a status
  std::vector<api::FieldError> errors;    // in spec
  std::vector<std::string> unknown = {};  // fields of spec that a newer definition has
  bool only_invalid = false;              // all of spec was read; fields do not go together
  bool only_for_servers = false;          // what could not be read is for servers alone
};

/// Fields of metadata that Kubernetes adds without our knowing are passed over. So is what a newer
/// operator wrote into the status, and what a newer definition has in spec, whose defaults the API
/// server writes into every job: nobody's job fails for a downgrade, or for one that is upgraded
/// first.
JobRecord read_job(Json object);
/// The same of a job of which an earlier version was read: where its generation did not change, its
/// spec did not either and is taken from there.
JobRecord read_job_again(Json object, const JobRecord& before);

}  // namespace outrigger::controller
