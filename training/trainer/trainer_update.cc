#include <algorithm>
#include <cmath>
#include <string>

#include "common/error.h"
#include "common/log.h"
#include "training/trainer/trainer.h"

/// The end of the trainer's step: sums of gradients become weights.
namespace outrigger::training {
namespace {

/// Zero times a number is zero, unless it is infinite or none; one sum finds any such.
bool all_finite(std::span<const float> values) {
  float sum = 0;
  for (const float value : values) sum += value * 0.0f;
  return sum == 0.0f;
}

}  // namespace

std::string Trainer::advice() const {
  return float16() ? "; float16 ends at 65504: write spec.training.precision: BFloat16 or Float32"
                   : "";
}

void Trainer::update(StepReport& report) {
  report.learning_rate = options_.learning_rate(report.step);
  const bool finite =
      device_.resident() != nullptr ? update_on_device(report) : update_on_host(report);
  after_update(finite, report);
  ++state_.step;
  if (!local_steps() || !synchronized()) return;
  const TimePoint asked = clock_.now();
  average_over_ranks();
  report.waited_for_ranks += clock_.now() - asked;
}

// Under staleness stems need the weights as they are now for some steps more.
void Trainer::keep_former() {
  if (options_.staleness == 0) return;
  state_.former_parameters[state_.step] = parameters();
  forget_former();
}

// Versions that no stem is asked for any more.
void Trainer::forget_former() {
  auto& former = state_.former_parameters;
  while (former.size() > options_.staleness) former.erase(former.begin());
}

bool Trainer::update_on_device(StepReport& report) {
  keep_former();
  const float mean = 1.0f / static_cast<float>(batch_size());
  const nn::ResidentUpdated updated = device_.resident()->update(
      {.learning_rate = report.learning_rate,
       .mean = mean,
       .clip_norm = options_.clip_gradient_norm,
       .other_squares = classifier_ ? classifier_->finish_gradients(mean) : 0});
  report.gradient_norm = updated.gradient_norm;
  if (!std::isfinite(report.gradient_norm)) return false;
  parameters_fetched_ = others_fetched_ = false;
  update_classes(report);
  if (options_.average_decay)
    nn::average_weights(*options_.average_decay, classes_of(state_.parameters),
                        classes_of(state_.averaged));
  if (!updated.weights_finite || !all_finite(classes_of(state_.parameters)))
    throw NumericalError("a weight is not a number at step " + std::to_string(report.step));
  return true;
}

bool Trainer::update_on_host(StepReport& report) {
  const float scale = 1.0f / static_cast<float>(batch_size());
  for (float& value : gradients_) value *= scale;
  double squares = nn::sum_of_squares(trunk_, gradients_);
  if (classifier_) squares += classifier_->finish_gradients(scale);
  report.gradient_norm = std::sqrt(squares);
  if (!std::isfinite(report.gradient_norm)) return false;
  if (options_.clip_gradient_norm && report.gradient_norm > *options_.clip_gradient_norm) {
    const auto shrink = static_cast<float>(*options_.clip_gradient_norm / report.gradient_norm);
    for (float& value : gradients_) value *= shrink;
  }
  keep_former();
  nn::sgd_step(trunk_, options_.optimizer, report.learning_rate, gradients_,
               trunk_of(state_.momentum), trunk_of(state_.parameters));
  update_classes(report);
  // Before anybody saves them.
  if (!all_finite(state_.parameters))
    throw NumericalError("a weight is not a number at step " + std::to_string(report.step));
  if (options_.average_decay)
    nn::average_weights(*options_.average_decay, state_.parameters, state_.averaged);
  return true;
}

// A step whose float16 gradients were too large counts, and the next one has a smaller scale.
void Trainer::after_update(bool finite, StepReport& report) {
  if (!finite && !float16())
    throw NumericalError("the gradient is not a number at step " + std::to_string(report.step));
  if (float16()) {
    const auto next = nn::next_scale({}, state_.loss_scale, finite);
    if (!next) {
      throw NumericalError("the gradient is not a number at step " + std::to_string(report.step) +
                           ", whatever the loss is scaled by" + advice());
    }
    if (!finite) {
      report.skipped = true;
      report.gradient_norm = 0;
      log::info("step {} is left out: its gradients pass float16's range; the loss scale is {} now",
                report.step, next->value);
    }
    state_.loss_scale = *next;
  }
  update_statistics();
  if (!all_finite(state_.buffers))
    throw NumericalError("a running average is not a number at step " +
                         std::to_string(report.step));
}

void Trainer::update_statistics() {
  const auto size = static_cast<size_t>(graph_.buffer_count());
  if (size == 0) return;
  for (size_t at = 0; at < statistics_.size(); at += size) {
    nn::update_running_averages(graph_, graph_.whole(), options_.device.micro_batch,
                                std::span<const float>(statistics_).subspan(at, size),
                                state_.buffers);
  }
}

}  // namespace outrigger::training
