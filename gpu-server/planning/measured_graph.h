#pragma once

#include "api/training_job.h"
#include "nn/graph.h"

namespace outrigger::gpu_server {

/// What to measure of the job's network: itself, or, where ranks share out its classes, one with
/// only so many of them that its last layer has the work of a rank's part. The layers, and so the
/// cuts, are the same.
nn::Graph measured_graph(const api::TrainingJob& job, const nn::Graph& graph);

/// The part of all parameters whose gradients a rank sums: of classes that ranks share out, its
/// own.
double stepped_part(const api::TrainingJob& job, const nn::Graph& graph);

}  // namespace outrigger::gpu_server
