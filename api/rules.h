#pragma once

#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"

namespace outrigger::api {

/// The rules that need several fields, of a job whose fields are right each by itself. Used by
/// validate.
void check_rules(const TrainingJob& job, std::vector<FieldError>& errors);

}  // namespace outrigger::api
