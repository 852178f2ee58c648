#pragma once

#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"

namespace outrigger::api {

/// Everything wrong with a job by itself: the bounds of every field, then the rules over several
/// fields. Empty: valid. Pure; the same rules as the CRD's. Whether a layer exists or a file can be
/// read is for others to say.
std::vector<FieldError> validate(const TrainingJob& job);

}  // namespace outrigger::api
