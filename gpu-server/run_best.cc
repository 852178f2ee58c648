#include "gpu-server/run_best.h"

namespace outrigger::gpu_server {

std::optional<double> metric_of(api::EvaluationMetric metric,
                                const training::EvaluationResult& result) {
  if (metric == api::EvaluationMetric::kVerification) return result.verification;
  if (metric == api::EvaluationMetric::kIdentification) return result.identification;
  if (result.samples > 0 && result.not_finite == result.samples) return std::nullopt;
  return result.accuracy;
}

bool note_metric(std::optional<double> metric, training::TrainingState& present,
                 training::TrainingState& evaluated) {
  const bool best = metric && (present.best_step < 0 || *metric > present.best_metric);
  if (!best) {
    ++present.evaluations_without_gain;
    return false;
  }
  present.evaluations_without_gain = evaluated.evaluations_without_gain = 0;
  present.best_metric = evaluated.best_metric = *metric;
  present.best_step = evaluated.best_step = static_cast<int64_t>(evaluated.step);
  return true;
}

void forget_best(training::TrainingState& state) {
  state.best_metric = 0;
  state.best_step = -1;
  state.evaluations_without_gain = 0;
}

}  // namespace outrigger::gpu_server
