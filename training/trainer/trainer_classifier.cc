#include <memory>

#include "training/trainer/trainer.h"

/// The trainer's part in a classifier that ranks share out.
namespace outrigger::training {

// The device keeps what the optimizer needs.
DeviceOptions Trainer::device_options() {
  DeviceOptions device = options_.device;
  device.optimizer = options_.optimizer;
  device.average_decay = options_.average_decay;
  if (classifier_ != nullptr) {
    device.most_at_once = 1;
    device.loss = [this](const feed::ReadyMicroBatch& batch, const ConstTensorView& output,
                         const TensorView& gradient) {
      return classifier_->run({batch.step, batch.index, output, batch.labels}, state_.parameters,
                              gradient);
    };
  }
  return device;
}

std::unique_ptr<PartialFc> Trainer::make_partial_fc(const nn::Backend& backend,
                                                    ThreadPool& threads) {
  if (!options_.partial_fc) return nullptr;
  PartialFcOptions options = *options_.partial_fc;
  options.micro_batch = options_.device.micro_batch;
  options.seed = options_.device.seed;
  return std::make_unique<PartialFc>(options, graph_, backend, threads, reducer_);
}

void Trainer::update_classes(const StepReport& report) {
  if (classifier_ == nullptr) return;
  const double norm = report.gradient_norm;
  const bool clips = options_.clip_gradient_norm && norm > *options_.clip_gradient_norm;
  const float shrink = clips ? static_cast<float>(*options_.clip_gradient_norm / norm) : 1.0f;
  classifier_->update(options_.optimizer, report.learning_rate, shrink, state_.momentum,
                      state_.parameters);
  gathered_ = ranks() == 1;
}

void Trainer::gather_state() {
  if (gathered_) return;
  for (std::vector<float>* arena : {&state_.parameters, &state_.momentum, &state_.averaged})
    classifier_->gather(*arena);
  gathered_ = true;
}

}  // namespace outrigger::training
