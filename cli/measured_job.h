#pragma once

#include <filesystem>
#include <optional>

#include "api/launch.h"
#include "api/training_job.h"
#include "training/planner/profile.h"

namespace outrigger::cli {

/// Measures on `threads` cores of this machine (absent: all) what a job costs: every layer, and
/// reading, decoding and augmenting some of its images. Seconds. Throws InvalidInput, IoError.
training::Profile measure_job(const api::TrainingJob& job, const api::Launch& launch, int threads);

}  // namespace outrigger::cli
