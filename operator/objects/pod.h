#pragma once

#include <string>

#include "api/training_job.h"
#include "operator/names.h"
#include "operator/options.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Which pod is made.
struct PodOrder {
  PodPlace place;
  int attempt = 1;
  int failures = 0;  // of this index, in a row, before this pod
  std::string image;
};

/// A pod of the job: the role's template, with our container ("server", "worker") added or filled
/// up. A template's words win, but for what the job cannot work without: names, labels, the restart
/// policy, our arguments and mounts. What nobody says is what Pod Security's `restricted` wants.
Json build_pod(const api::TrainingJob& job, const PodOrder& order, const Options& options);

/// Whether what the job's server writes at `path` is still there when its pod is gone.
bool outlives_server_pod(const api::TrainingJob& job, const std::string& path);

/// The image that a template gives our container; the operator's where it gives none.
std::string wanted_image(const api::TrainingJob& job, api::Role role, const Options& options);

/// What passes to one server and its threads from job to job: attempts of a job that was deleted
/// and made anew count on, so that checkpoints on its volume are not shut off from it.
int64_t fencing_attempt(const api::TrainingJob& job, int attempt);

}  // namespace outrigger::controller
