#pragma once

#include "api/training_job.h"

namespace outrigger::api {

/// Sets the defaults that depend on other fields (the constant ones are the structs' own initial
/// values):
/// - training.microBatchSize: the largest divisor of a rank's part of the batch that is at most 32;
/// - training.evaluate: after every epoch by accuracy, where data.validation is given.
/// Idempotent. Leaves a field alone where what it depends on is not valid.
void apply_defaults(TrainingJob& job);

}  // namespace outrigger::api
