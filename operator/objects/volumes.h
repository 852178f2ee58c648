#pragma once

#include "api/training_job.h"
#include "operator/objects/pod.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Adds to a pod's spec the volumes that its role needs, and to our container where they lie: the
/// job's file and tokens in kJobFilePath's folder, claims at their paths, room to write at /tmp and
/// at an output path that no claim and no mount of the template covers.
void add_volumes(Json& spec, Json& container, const api::TrainingJob& job, const PodOrder& order);

/// Whether what the server writes at `path` is still there when its pod is gone. `spec` and
/// `container` are what the job's template says of them.
bool outlives_pod(const api::TrainingJob& job, Json spec, Json container, const std::string& path);

}  // namespace outrigger::controller
