#pragma once

#include <string>
#include <vector>

#include "api/training_job.h"

/// What a checkpoint keeps of the job that it is of, to tell whether a later start changes it.
namespace outrigger::gpu_server {

/// The fields of spec.training, spec.data.image and spec.data.augment that are not as their
/// defaults, as JSON. Left out are those that only say how long to train and when to look (steps,
/// epochs, evaluate), and those that a checkpoint keeps by themselves (batchSize, seed …).
std::string settings_of(const api::TrainingJob& job);

/// Which of these fields differ between two such texts, by their places in a job. What is no such
/// text differs in nothing.
std::vector<std::string> changed_settings(const std::string& former, const std::string& now);

}  // namespace outrigger::gpu_server
