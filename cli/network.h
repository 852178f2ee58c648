#pragma once

#include <cstdint>
#include <optional>

#include "api/training_job.h"
#include "nn/graph.h"

namespace outrigger::cli {

/// The job's network before its data is looked for, with `any` number of classes where only the
/// data tells how many there are; nothing where it alone tells whether there is a network. Throws
/// InvalidInput as worker::build_graph() does.
std::optional<nn::Graph> network_of(const api::TrainingJob& job, int64_t any = 2);

}  // namespace outrigger::cli
