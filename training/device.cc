#include "training/device.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace outrigger::training {
Device::Device(DeviceOptions options, const nn::Graph& graph, const nn::Backend& backend,
               ThreadPool& threads)
    : options_(options),
      graph_(graph),
      backend_(backend),
      threads_(threads),
      resident_(backend.make_resident(
          graph, {options.optimizer, options.average_decay, options.label_smoothing})),
      gradients_(resident_ ? 0 : static_cast<size_t>(graph.parameter_count())),
      statistics_(static_cast<size_t>(graph.buffer_count())) {}

Device::Part Device::make_part(nn::Segment segment, bool input_gradient) const {
  Part part;
  part.segment = segment;
  part.program = backend_.compile(graph_,
                                  {.segment = segment,
                                   .batch = options_.micro_batch,
                                   .precision = options_.precision,
                                   .mode = nn::Mode::kTraining,
                                   .input_gradient = input_gradient,
                                   .seed = options_.seed},
                                  threads_);
  part.weights = part.program->new_weights();
  part.tape = part.program->new_tape();
  return part;
}

void Device::set_cut(int32_t cut, bool stem_trains) {
  if (cut == cut_ && stem_trains == stem_trains_) return;
  cut_ = cut;
  stem_trains_ = stem_trains;
  stem_ = {};
  head_ = make_part({cut, graph_.size()}, cut > 0 && stem_trains);
  const nn::TensorSpec logits = head_.program->output_spec();
  logits_ = Tensor(logits.type, logits.shape);
  logits_gradient_ = Tensor(logits.type, logits.shape);
}

Device::Part& Device::stem() {
  if (stem_.program == nullptr) {
    stem_ = make_part({0, cut_}, false);
    const nn::TensorSpec spec = stem_.program->output_spec();
    crossing_ = Tensor(spec.type, spec.shape);
  }
  if (!stem_.loaded) load_part(stem_, stem_parameters_, buffers_);
  return stem_;
}

void Device::load_part(Part& part, std::span<const float> parameters,
                       std::span<const float> buffers) const {
  part.loaded = true;
  if (parameters.empty()) {
    ensure(resident_ != nullptr, "weights come from the host unless the device has them");
    resident_->load(*part.program, *part.weights,
                    nn::part_of(buffers, graph_.buffer_range(part.segment)));
    return;
  }
  part.program->load(*part.weights, nn::part_of(parameters, graph_.parameter_range(part.segment)),
                     nn::part_of(buffers, graph_.buffer_range(part.segment)));
}

void Device::load(std::span<const float> stem_parameters, std::span<const float> parameters,
                  std::span<const float> buffers) {
  ensure(head_.program != nullptr, "a cut is set before weights are loaded");
  load_part(head_, resident_ ? std::span<const float>() : parameters, buffers);
  stem_.loaded = false;
  stem_parameters_ = stem_parameters;
  buffers_ = buffers;
}

std::span<float> Device::statistics_of(const Part& part) {
  return nn::part_of(std::span<float>(statistics_), graph_.buffer_range(part.segment));
}

void Device::forward(Part& part, const ConstTensorView& input, const feed::ReadyMicroBatch& batch,
                     const TensorView& output) {
  part.program->forward(*part.weights, *part.tape,
                        {input, options_.micro_batch, batch.slots, batch.labels},
                        {output, statistics_of(part)});
}

void Device::backward(Part& part, const ConstTensorView& output_gradient,
                      const TensorView& input_gradient) {
  if (resident_) {
    resident_->backward({*part.program, *part.weights, *part.tape}, output_gradient, loss_scale_);
    return;
  }
  part.program->backward(*part.weights, *part.tape, output_gradient,
                         {input_gradient, nn::part_of(std::span<float>(gradients_),
                                                      graph_.parameter_range(part.segment))});
}

nn::LossResult Device::run_head(const ConstTensorView& input, const feed::ReadyMicroBatch& batch,
                                const TensorView& input_gradient, bool last) {
  if (resident_) {
    return resident_->train({*head_.program, *head_.weights, *head_.tape, last},
                            {input, options_.micro_batch, batch.slots, batch.labels},
                            statistics_of(head_), input_gradient, loss_scale_);
  }
  forward(head_, input, batch, logits_.view());
  const nn::LossResult loss = nn::softmax_cross_entropy(
      logits_.view(), batch.labels, options_.label_smoothing, logits_gradient_.view());
  backward(head_, logits_gradient_.view(), input_gradient);
  return loss;
}

MicroBatchResult Device::run(const feed::ReadyMicroBatch& batch, bool last) {
  const bool stem_here = batch.cut != cut_;
  ConstTensorView input = batch.tensor->view();
  if (stem_here) {
    ensure(batch.cut == 0, "a micro-batch is cut at 0 or at the plan's cut");
    Part& before = stem();  // makes crossing_ too
    forward(before, input, batch, crossing_.view());
    input = crossing_.view();
  } else {
    std::ranges::copy(batch.statistics, statistics_.begin());
  }
  const nn::TensorSpec spec = head_.program->input_spec();
  if (input.type != spec.type || input.shape != spec.shape) {
    throw InvalidInput("micro-batch " + std::to_string(batch.index) + " of step " +
                       std::to_string(batch.step) + " has shape " + to_string(input.shape) +
                       ", the head wants " + to_string(spec.shape));
  }
  MicroBatchResult result;
  std::shared_ptr<Tensor> cut_gradient;
  if (cut_ > 0 && stem_trains_) cut_gradient = std::make_shared<Tensor>(spec.type, spec.shape);
  result.loss = run_head(input, batch, cut_gradient ? cut_gradient->view() : TensorView{}, last);
  result.gradient_range = graph_.parameter_range(head_.segment);
  if (stem_here && stem_trains_) {
    backward(stem_, cut_gradient->view(), {});
    result.gradient_range = graph_.parameter_range(graph_.whole());
  } else {
    result.cut_gradient = std::move(cut_gradient);
  }
  result.gradients = gradients_;
  result.statistics = statistics_;
  return result;
}

}  // namespace outrigger::training
