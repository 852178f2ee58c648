#pragma once

#include <string>

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// The job has failed: into the status now, and in the next pass its pods are cleaned up.
void fail(Pass& pass, const std::string& reason, const std::string& message);

/// True once the first rank has done its work and all others have ended: the job is complete, into
/// the status.
bool complete(Pass& pass);

/// A finished job: pods by cleanPodPolicy, the job itself by ttlSecondsAfterFinished.
void after_the_end(Pass& pass);

}  // namespace outrigger::controller
