#pragma once

#include <string>
#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"

namespace outrigger::api {

/// What this build, started this way, can do beyond the least. Later parts switch rows on by what
/// they add.
struct Capabilities {
  bool cluster = false;  // run by the operator; false: on machines by hand or by `outrigger run`
  bool gpu = false;      // a CUDA device can be used
};

/// What is valid but not built yet, or not to be had in a cluster's pods: one error for each field
/// that asks for it, with what to write instead. Fields that only a cluster can follow (a pod
/// template, clean-up policies) change nothing on one machine and pass there.
std::vector<FieldError> check_supported(const TrainingJob& job, const Capabilities& capabilities);

/// Throws Failure(kNotSupported) with every error of check_supported.
void require_supported(const TrainingJob& job, const Capabilities& capabilities);

}  // namespace outrigger::api
