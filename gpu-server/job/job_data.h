#pragma once

#include <filesystem>

#include "api/training_job.h"
#include "data/image_folder.h"
#include "data/sample.h"

/// The data sets that a TrainingJob names.
namespace outrigger::gpu_server {

/// Lists a data set of the job at `root`. Throws Failure of kBadData where it is none, also where
/// there is no such folder: a path is wrong far more often than a mount is late. IoError where it
/// cannot be read.
data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const data::ListOptions& options);
/// The job's validation set, empty where it has none. Labels follow training's classes; where the
/// metric is one of embeddings, people who are not trained on come behind these, else they are
/// refused. Throws likewise.
data::Dataset list_validation(const api::TrainingJob& job, const std::filesystem::path& root,
                              const data::Dataset& train);
/// Throws InvalidInput where the job's metric cannot be measured on its validation set, as when all
/// people have one photo; warns of classes that have one image to train with, and tells of people
/// to be recognised who are not trained on.
void check_lists(const api::TrainingJob& job, const data::Dataset& train,
                 const data::Dataset& validation);

}  // namespace outrigger::gpu_server
