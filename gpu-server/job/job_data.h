#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "data/sample.h"

/// The data sets that a TrainingJob names.
namespace outrigger::gpu_server {

/// Lists a data set of the job at `root`; labels of a validation set follow training's classes.
/// Throws Failure of kBadData where it is none, also where there is no such folder: a path is wrong
/// far more often than a mount is late. IoError where it cannot be read.
data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const std::vector<std::string>& classes);
/// Throws InvalidInput where the job's metric cannot be measured on its validation set, as when all
/// people have one photo; warns of classes that have one image to train with.
void check_lists(const api::TrainingJob& job, const data::Dataset& train,
                 const data::Dataset& validation);

}  // namespace outrigger::gpu_server
