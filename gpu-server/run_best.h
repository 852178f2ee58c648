#pragma once

#include <optional>

#include "api/training.h"
#include "training/evaluation/evaluation.h"
#include "training/state.h"

namespace outrigger::gpu_server {

/// What the job judges weights by. Nothing where it could not be measured: no image could be
/// decoded, the labels give no pairs, or the network makes no numbers of the images.
std::optional<double> metric_of(api::EvaluationMetric metric,
                                const training::EvaluationResult& result);

/// Notes in both states, that of the run and the evaluated one (perhaps the same), what its weights
/// came to. True where they are the best so far; without a metric they never are.
bool note_metric(std::optional<double> metric, training::TrainingState& present,
                 training::TrainingState& evaluated);

/// No weights are the best: those that were are so by another metric.
void forget_best(training::TrainingState& state);

}  // namespace outrigger::gpu_server
