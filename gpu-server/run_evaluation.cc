#include <cmath>

#include "gpu-server/run.h"

/// What a run does beside training to know how good its weights are.
namespace outrigger::gpu_server {

bool Run::due_for_evaluation(uint64_t step) const {
  if (!job_.spec.training.evaluate || validation_.size() == 0 || !first_rank()) return false;
  if (step == size_.total_steps) return true;
  const uint64_t before = step_synchronized_before(job_, step);
  const auto every = job_.spec.training.evaluate->every_steps;
  if (every) {
    const auto steps = static_cast<uint64_t>(*every);
    return step / steps > before / steps;
  }
  return std::floor(size_.epochs_of(step)) > std::floor(size_.epochs_of(before));
}

void Run::evaluate_if_due() {
  const uint64_t step = trainer_.counters().step;
  const bool done = trainer_.counters().evaluated_step >= static_cast<int64_t>(step);
  if (step > 0 && !done && due_for_evaluation(step)) evaluate();
}

bool Run::without_gain() const {
  const auto& evaluate = job_.spec.training.evaluate;
  return evaluate && evaluate->stop_after_no_gain && first_rank() &&
         trainer_.counters().evaluations_without_gain >= *evaluate->stop_after_no_gain;
}

void Run::evaluate() {
  const api::EvaluateSpec& spec = *job_.spec.training.evaluate;
  const TimePoint start = clock_.now();
  const auto span = trace_.span("evaluate", 0, static_cast<int64_t>(trainer_.counters().step));
  training::TrainingState& state = trainer_.state();
  const auto& parameters = state.averaged.empty() ? state.parameters : state.averaged;
  const auto result = evaluator_.run(feed_, validation_, parameters, state.buffers,
                                     spec.metric != api::EvaluationMetric::kAccuracy);
  reporter_.evaluation(state.step, result, clock_.now() - start);
  state.evaluated_step = static_cast<int64_t>(state.step);
  double metric = result.accuracy;
  if (spec.metric == api::EvaluationMetric::kVerification) metric = result.verification.value_or(0);
  if (spec.metric == api::EvaluationMetric::kIdentification)
    metric = result.identification.value_or(0);
  if (state.best_step < 0 || metric > state.best_metric) {
    state.best_metric = metric;
    state.best_step = static_cast<int64_t>(state.step);
    state.evaluations_without_gain = 0;
    take_over_broken_samples();
    if (spec.keep_best) files_.save_best(state);
  } else {
    ++state.evaluations_without_gain;
  }
}

}  // namespace outrigger::gpu_server
