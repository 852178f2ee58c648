#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "common/log.h"
#include "gpu-server/run.h"
#include "gpu-server/run_best.h"
#include "nn/scorer.h"
#include "worker/job.h"

/// What a run does beside training to know how good its weights are.
namespace outrigger::gpu_server {
namespace {

/// What is evaluated, and at the end handed out.
const std::vector<float>& handed_out(const training::TrainingState& state) {
  return state.averaged.empty() ? state.parameters : state.averaged;
}

training::FaceMetrics wanted_of(const api::EvaluateSpec& evaluate) {
  return {.verification = evaluate.metric == api::EvaluationMetric::kVerification,
          .identification = evaluate.metric == api::EvaluationMetric::kIdentification};
}

}  // namespace

bool Run::due_for_evaluation(uint64_t step) const {
  if (!job_.spec.training.evaluate || validation_.size() == 0) return false;
  if (step == size_.total_steps) return true;
  const uint64_t before = step_synchronized_before(job_, step);
  const auto every = job_.spec.training.evaluate->every_steps;
  if (every) {
    const auto steps = static_cast<uint64_t>(*every);
    return step / steps > before / steps;
  }
  return std::floor(size_.epochs_of(step)) > std::floor(size_.epochs_of(before));
}

bool Run::state_is_wanted(uint64_t step) const {
  return due_for_evaluation(step) || files_.is_checkpoint_step(step);
}

std::unique_ptr<KeepWaiting> Run::keep_others_waiting() {
  constexpr Duration kMost = std::chrono::seconds(5);
  const uint64_t step = trainer_.counters().step;
  const bool works = state_is_wanted(step) || trainer_.counters().evaluating != nullptr;
  // Else the others do not wait here, but go on with steps of their own.
  const bool all_wait = reducer_ != nullptr && trainer_.synchronized();
  if (!all_wait || !first_rank() || step >= size_.total_steps || !works) return nullptr;
  return std::make_unique<KeepWaiting>(
      *reducer_, std::min<Duration>(kMost, Duration(job_.spec.progress_deadline) / 4),
      [this] { evaluation_stop_.request_stop(); });
}

void Run::evaluate_if_due() {
  const uint64_t step = trainer_.counters().step;
  const bool done = trainer_.counters().evaluated_step >= static_cast<int64_t>(step);
  const bool due = first_rank() && step > 0 && !done && due_for_evaluation(step);
  end_evaluation_beside(due || step == size_.total_steps);
  if (!due) return;
  if (step < size_.total_steps && evaluation_placement_.on_workers(feed_.scorers())) {
    training::TrainingState& state = trainer_.state();
    take_over_broken_samples();
    state.evaluated_step = static_cast<int64_t>(step);
    auto copy = std::make_shared<training::TrainingState>(state);
    copy->plan.reset();
    copy->former_parameters.clear();
    begin_evaluation_beside(std::move(copy));
  } else {
    evaluate_here();
  }
}

bool Run::without_gain() const {
  const auto& evaluate = job_.spec.training.evaluate;
  return evaluate && evaluate->stop_after_no_gain && first_rank() &&
         trainer_.counters().evaluations_without_gain >= *evaluate->stop_after_no_gain;
}

void Run::evaluate_here() {
  const TimePoint start = clock_.now();
  const auto span = trace_.span("evaluate", 0, static_cast<int64_t>(trainer_.counters().step));
  training::TrainingState& state = trainer_.state();
  const auto result = evaluate(state);
  if (!result) return;
  state.evaluated_step = static_cast<int64_t>(state.step);
  take_over_broken_samples();
  const Duration took = clock_.now() - start;
  evaluation_placement_.server_took(to_seconds(took));
  judge(state, *result, took, "server");
}

std::optional<training::EvaluationResult> Run::evaluate(const training::TrainingState& state) {
  try {
    return evaluator_.run(feed_, validation_, handed_out(state), state.buffers,
                          wanted_of(*job_.spec.training.evaluate));
  } catch (const Cancelled&) {
    if (reducer_ == nullptr) throw;
    feed_.end_evaluation();
    log::info("the evaluation of step {} is left to the run that goes on", state.step);
    return std::nullopt;
  }
}

void Run::begin_evaluation_beside(std::shared_ptr<training::TrainingState> state) {
  scoring_since_ = clock_.now();
  scorers_ = feed_.scorers();
  feed::ScoringOptions options;
  options.dataset = &validation_;
  options.batch = static_cast<uint32_t>(worker::scored_at_once(worker::micro_batch(job_)));
  options.width = nn::score_width(graph_, worker::scores_embeddings(job_));
  options.layers = graph_.size();
  // Of one owner with the state: the arenas are large.
  options.parameters = {state, &handed_out(*state)};
  options.buffers = {state, &state->buffers};
  feed_.begin_scoring(std::move(options));
  trainer_.counters().evaluating = std::move(state);
}

void Run::resume_evaluation_beside() {
  const auto state = std::exchange(trainer_.counters().evaluating, nullptr);
  const bool evaluates = job_.spec.training.evaluate && validation_.size() > 0;
  if (state != nullptr && evaluates && first_rank()) begin_evaluation_beside(state);
}

void Run::end_evaluation_beside(bool wait) {
  const auto state = trainer_.counters().evaluating;
  if (state == nullptr || (!wait && feed_.scored() < 1)) return;
  const TimePoint start = clock_.now();
  auto result = scores();
  const char* by = result ? "workers" : "server";
  if (!result) result = evaluate(*state);
  if (!result) return;
  trainer_.counters().evaluating.reset();  // not before: a stop meanwhile leaves it to the next run
  evaluation_loss_.waited(to_seconds(clock_.now() - start));
  evaluation_placement_.workers_took(evaluation_loss_.take(), scorers_);
  judge(*state, *result, clock_.now() - scoring_since_, by);
}

std::optional<training::EvaluationResult> Run::scores() {
  const double done = feed_.scored();
  const bool complete = !evaluation_placement_.server_instead(done) && feed_.wait_for_scores();
  const auto batches = feed_.end_scoring();
  if (!complete) {
    log::info("workers have evaluated {:.0f} % of the images; the server does it instead",
              100 * done);
    return std::nullopt;
  }
  training::EvaluationSums sums(nn::score_width(graph_, worker::scores_embeddings(job_)),
                                static_cast<int32_t>(train_.classes().size()));
  for (const auto& batch : batches) sums.add(batch.rows, batch.labels);
  return sums.result(validation_.size(), wanted_of(*job_.spec.training.evaluate), threads_);
}

void Run::judge(training::TrainingState& state, const training::EvaluationResult& result,
                Duration took, const char* by) {
  reporter_.evaluation(state.step, result, took, by);
  const api::EvaluateSpec& spec = *job_.spec.training.evaluate;
  const auto metric = metric_of(spec.metric, result);
  if (!metric)
    log::warning("step {}: {} could not be measured, so these weights are not taken for the best",
                 state.step, api::to_string(spec.metric));
  if (note_metric(metric, trainer_.counters(), state) && spec.keep_best) files_.save_best(state);
}

}  // namespace outrigger::gpu_server
