#pragma once

#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"

namespace outrigger::api {

/// What a job names by itself and does not have: a layer that another one reads and that does not
/// stand before it, the image of an External server. Of a job that `validate` calls right. An API
/// server asks none of it (docs/decisions/0055): a job may get as far as the operator, which fails
/// it.
std::vector<FieldError> check_references(const TrainingJob& job);

}  // namespace outrigger::api
