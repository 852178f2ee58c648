#pragma once

#include "api/training_job.h"

namespace outrigger::api {

/// Sets the defaults that depend on other fields (the constant ones are the structs' own initial
/// values):
/// - training.microBatchSize: the largest divisor of a rank's part of the batch that is at most 32;
/// - training.evaluate: after every epoch by accuracy, where data.validation is given.
/// Idempotent. Leaves a field alone where what it depends on is not valid.
void apply_defaults(TrainingJob& job);

/// The type in which a tensor travels that the job wants sent as `asked`: Auto is the job's
/// precision (float32 for Float16, which no wire has), so nothing is lost that the job computes
/// with.
WireFormat wire_format(WireFormat asked, Precision precision);

}  // namespace outrigger::api
