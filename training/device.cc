#include "training/device.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/error.h"

namespace outrigger::training {
Device::Device(DeviceOptions options, const nn::Graph& graph, const nn::Backend& backend,
               ThreadPool& threads)
    : options_(std::move(options)),
      graph_(graph),
      backend_(backend),
      threads_(threads),
      resident_(backend.make_resident(
          graph, {options_.optimizer, options_.average_decay, options_.label_smoothing})),
      chunk_space_(tells_host() ? nullptr : backend.make_work_space()),
      gradients_(tells_host() ? static_cast<size_t>(graph.parameter_count()) : 0) {
  ensure(!tells_host() || options_.most_at_once == 1,
         "micro-batches run as one on a device with arrays and a loss of its own");
}

Device::Part Device::make_part(nn::Segment segment, bool input_gradient, uint32_t groups,
                               Part& former, std::shared_ptr<nn::WorkSpace> space) const {
  Part part;
  part.segment = segment;
  part.program = backend_.compile(graph_,
                                  {.segment = segment,
                                   .batch = options_.micro_batch * groups,
                                   .precision = options_.precision,
                                   .mode = nn::Mode::kTraining,
                                   .input_gradient = input_gradient,
                                   .seed = options_.seed,
                                   .work_space = std::move(space),
                                   .groups = groups,
                                   .time_layers = true},
                                  threads_);
  part.weights = part.program->new_weights();
  part.tape = part.program->new_tape_in(std::move(former.tape));
  return part;
}

void Device::set_cut(int32_t cut, bool stem_trains) {
  if (cut == cut_ && stem_trains == stem_trains_) return;
  ensure(started() == 0 && !staged_, "a cut moves between steps");
  const bool deeper = cut >= cut_;
  cut_ = cut;
  stem_trains_ = stem_trains;
  former_stem_ = std::exchange(stem_, {});
  // Beside a larger head there may be no room for it, and a device of its own has no use for it.
  if (!deeper || resident_ != nullptr) former_stem_ = {};
  first_step_ = true;
  loaded_chunk_ = nullptr;
  if (!tells_host()) {
    std::erase_if(chunks_, [](const auto& chunk) { return chunk.first.first > 0; });
    return;
  }
  head_ = make_part({cut, graph_.size()}, cut > 0 && stem_trains, 1, head_);
  const nn::TensorSpec logits = head_.program->output_spec();
  logits_ = Tensor(logits.type, logits.shape);
  logits_gradient_ = Tensor(logits.type, logits.shape);
}

Device::Part& Device::stem() {
  if (stem_.program == nullptr) {
    stem_ = make_part({0, cut_}, false, 1, former_stem_);
    former_stem_ = {};
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
  ensure(cut_ >= 0, "a cut is set before weights are loaded");
  if (tells_host())
    load_part(head_, resident_ == nullptr ? parameters : std::span<const float>(), buffers);
  loaded_chunk_ = nullptr;
  stem_.loaded = false;
  if (!std::exchange(first_step_, false)) former_stem_ = {};
  stem_parameters_ = stem_parameters;
  buffers_ = buffers;
}

void Device::check_input(const feed::ReadyMicroBatch& batch, const nn::TensorSpec& spec,
                         bool unpacks) const {
  Shape wanted = spec.shape;
  wanted.front() = options_.micro_batch;
  const ConstTensorView input = batch.tensor->view();
  bool fits = input.shape == wanted;
  if (batch.scales == nullptr) {
    fits = fits && input.type == spec.type;
  } else {
    const ConstTensorView scales = batch.scales->view();
    fits = fits && unpacks && spec.type != ElementType::kUint8 && element_size(input.type) == 1 &&
           scales.type == ElementType::kFloat32 && scales.shape == Shape{wanted.back()};
  }
  if (fits) return;
  throw InvalidInput("micro-batch " + std::to_string(batch.index) + " of step " +
                     std::to_string(batch.step) + " has shape " + to_string(input.shape) + " of " +
                     to_string(input.type) + ", the device wants " + to_string(wanted) + " of " +
                     to_string(spec.type));
}

nn::ForwardInput Device::input_of(const feed::ReadyMicroBatch& batch,
                                  const ConstTensorView& input) const {
  return {input, options_.micro_batch, batch.slots, batch.labels};
}

// Makes crossing_.
void Device::forward_stem(const feed::ReadyMicroBatch& batch, std::span<float> statistics) {
  const Part& before = stem();
  check_input(batch, before.program->input_spec());
  before.program->forward(
      *before.weights, *before.tape, input_of(batch, batch.tensor->view()),
      {crossing_.view(), nn::part_of(statistics, graph_.buffer_range(before.segment))});
}

void Device::start(Batches batches, std::span<float> statistics, bool last,
                   const GradientsReady& ready) {
  ensure(!batches.empty() && started() <= most_started(), "what may be started is");
  ensure(batches.front().cut == cut_ || batches.front().cut == 0,
         "a micro-batch is cut at 0 or at the plan's cut");
  const auto columns = static_cast<size_t>(graph_.buffer_count());
  for (size_t i = 0; i < batches.size(); ++i) {
    ensure(batches[i].statistics.size() <= columns, "statistics are of the graph's norms");
    std::ranges::copy(batches[i].statistics,
                      statistics.begin() + static_cast<ptrdiff_t>(i * columns));
  }
  if (!tells_host()) {
    start_resident(batches, statistics, last);
  } else {
    ensure(batches.size() == 1, "the host is told of one micro-batch at a time");
    start_on_host(batches.front(), statistics, ready);
  }
}

void Device::start_on_host(const feed::ReadyMicroBatch& batch, std::span<float> statistics,
                           const GradientsReady& ready) {
  const bool stem_here = batch.cut != cut_;
  ConstTensorView input = batch.tensor->view();
  if (stem_here) {
    forward_stem(batch, statistics);
    input = crossing_.view();
  } else {
    check_input(batch, head_.program->input_spec());
  }
  ChunkResult result{.step = batch.step, .first = batch.index, .first_slot = batch.slots.front()};
  head_.program->forward(
      *head_.weights, *head_.tape, input_of(batch, input),
      {logits_.view(), nn::part_of(statistics, graph_.buffer_range(head_.segment))});
  result.loss = options_.loss
                    ? options_.loss(batch, logits_.view(), logits_gradient_.view())
                    : nn::softmax_cross_entropy(logits_.view(), batch.labels,
                                                options_.label_smoothing, logits_gradient_.view());
  // Of a loss that is no number nothing may leave before collect() has told.
  const bool tells = std::isfinite(result.loss.loss_sum);
  backward_on_host(result, stem_here, tells ? ready : GradientsReady{});
  results_.push_back(std::move(result));
}

void Device::backward_on_host(ChunkResult& result, bool stem_here, const GradientsReady& ready) {
  const nn::TensorSpec spec = head_.program->input_spec();
  std::shared_ptr<Tensor> cut_gradient;
  if (cut_ > 0 && stem_trains_) cut_gradient = std::make_shared<Tensor>(spec.type, spec.shape);
  if (resident_ != nullptr && cut_gradient == nullptr) {
    resident_->backward(head_.pass(), logits_gradient_.view(), loss_scale_);
    return;
  }
  run_backward(head_, logits_gradient_.view(), cut_gradient ? cut_gradient->view() : TensorView{},
               ready);
  result.gradient_range = graph_.parameter_range(head_.segment);
  if (stem_here && stem_trains_) {
    run_backward(stem_, std::as_const(*cut_gradient).view(), {}, ready);
    result.gradient_range = graph_.parameter_range(graph_.whole());
  } else if (cut_gradient) {
    result.cut_gradients.push_back(std::move(cut_gradient));
  }
  result.gradients = gradients_;
}

void Device::run_backward(const Part& part, const ConstTensorView& output_gradient,
                          const TensorView& input_gradient, const GradientsReady& ready) {
  const nn::Range range = graph_.parameter_range(part.segment);
  nn::BackwardOutput out{input_gradient, nn::part_of(std::span<float>(gradients_), range)};
  if (ready) out.ready = [&](int64_t first) { ready(gradients_, range.offset + first); };
  part.program->backward(*part.weights, *part.tape, output_gradient, out);
  follow(layer_seconds_, part.program->take_layer_seconds(),
         static_cast<size_t>(part.segment.begin));
}

ChunkResult Device::collect() {
  ensure(started() > 0, "what is collected was started");
  if (!results_.empty()) {
    ChunkResult result = std::move(results_.front());
    results_.pop_front();
    return result;
  }
  UnderWay done = std::move(under_way_.front());
  under_way_.pop_front();
  done.result.loss = resident_->collect();
  if (done.stem_after) {
    resident_->backward(stem_.pass(), done.cut_gradient.view(), loss_scale_);
  } else if (!done.cut_gradient.empty()) {
    const auto count =
        static_cast<size_t>(done.cut_gradient.shape().front() / options_.micro_batch);
    done.result.cut_gradients = split(done.cut_gradient, count);
  }
  return std::move(done.result);
}

}  // namespace outrigger::training
