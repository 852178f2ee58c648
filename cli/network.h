#pragma once

#include <optional>

#include "api/training_job.h"
#include "nn/graph.h"

namespace outrigger::cli {

/// The job's network, but perhaps for how many classes it has, before its data is looked for;
/// nothing where only the data tells whether there is one. Throws InvalidInput as
/// worker::build_graph() does.
std::optional<nn::Graph> network_of(const api::TrainingJob& job);

}  // namespace outrigger::cli
