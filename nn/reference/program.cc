#include <algorithm>
#include <string>
#include <vector>

#include "common/error.h"
#include "nn/reference/backend.h"
#include "nn/reference/layer.h"
#include "nn/reference/state.h"

namespace outrigger::nn {
namespace reference {
namespace {

size_t index(int64_t i) { return static_cast<size_t>(i); }

class ReferenceProgram final : public Program {
 public:
  ReferenceProgram(const Graph& graph, const ProgramOptions& options);

  TensorSpec input_spec() const override {
    if (segment_.begin == 0) return {ElementType::kUint8, batched(graph_.input())};
    return {boundary_type(), batched(layer(segment_.begin - 1).output)};
  }
  TensorSpec output_spec() const override {
    const bool last = segment_.end == graph_.size();
    return {last ? ElementType::kFloat32 : boundary_type(),
            batched(layer(segment_.end - 1).output)};
  }
  std::unique_ptr<Weights> new_weights() const override {
    return std::make_unique<ReferenceWeights>();
  }
  std::unique_ptr<Tape> new_tape() const override;
  void load(Weights& weights, std::span<const float> parameters,
            std::span<const float> buffers) const override;
  void forward(const Weights& weights, Tape& tape, const ForwardInput& in,
               const ForwardOutput& out) const override;
  void backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                const BackwardOutput& out) const override;

 private:
  const Layer& layer(int i) const { return graph_.layers()[index(i)]; }
  bool training() const { return options_.mode == Mode::kTraining; }
  Shape batched(const Shape& shape) const {
    Shape all{options_.batch};
    all.insert(all.end(), shape.begin(), shape.end());
    return all;
  }
  ElementType boundary_type() const {
    return options_.precision == Precision::kFloat32 ? ElementType::kFloat32
                                                     : ElementType::kBFloat16;
  }
  // Where the tape holds the output of a layer, or the segment's input.
  size_t place(int layer_index) const { return index(layer_index - segment_.begin + 1); }
  bool measures(const Layer& norm) const { return training() && norm.buffer >= 0 && !norm.frozen; }
  void mark_gradients();

  template <typename T>
  std::span<T> of_layer(std::span<T> arena, int i) const {
    const Range range = graph_.parameter_range({i, i + 1});
    return arena.subspan(index(range.offset - parameters_.offset), index(range.size));
  }
  template <typename T>
  std::span<T> averages_of(std::span<T> arena, int i) const {
    const Range range = graph_.buffer_range({i, i + 1});
    return arena.subspan(index(range.offset - buffers_.offset), index(range.size));
  }
  Forward forward_values(const ReferenceWeights& weights, ReferenceTape& tape, int i,
                         int64_t samples) const;
  Backward backward_values(const ReferenceWeights& weights, ReferenceTape& tape, int i,
                           std::span<float> gradients) const;

  const Graph& graph_;
  const ProgramOptions options_;
  const Segment segment_;
  const Range parameters_, buffers_;
  std::vector<std::unique_ptr<LayerCode>> code_;  // null for Normalize
  std::vector<bool>
      wants_gradient_;  // by place(): whether backward needs the gradient of that value
};

ReferenceProgram::ReferenceProgram(const Graph& graph, const ProgramOptions& options)
    : graph_(graph),
      options_(options),
      segment_(options.segment),
      parameters_(graph.parameter_range(options.segment)),
      buffers_(graph.buffer_range(options.segment)) {
  for (int i = segment_.begin; i < segment_.end; ++i) {
    if (std::holds_alternative<Normalize>(layer(i).operation)) {
      code_.push_back(nullptr);
      continue;
    }
    Place place;
    place.in = to_extent(layer(layer(i).inputs[0]).output);
    place.out = to_extent(layer(i).output);
    place.index = i;
    place.seed = options.seed;
    place.training = training();
    place.batch_statistics = measures(layer(i));
    code_.push_back(make_layer(place, layer(i).operation));
  }
  mark_gradients();
}

// A value's gradient is wanted where the segment's input's is and the value depends on it, or where
// something that trains lies before it.
void ReferenceProgram::mark_gradients() {
  wants_gradient_.assign(code_.size() + 1, false);
  wants_gradient_[0] = options_.input_gradient;
  for (int i = segment_.begin; i < segment_.end; ++i) {
    bool wanted = false;
    for (const int p : layer(i).parameters)
      wanted = wanted || graph_.parameters()[index(p)].trainable;
    for (const int input : layer(i).inputs) wanted = wanted || wants_gradient_[place(input)];
    wants_gradient_[place(i)] = wanted;
  }
}

std::unique_ptr<Tape> ReferenceProgram::new_tape() const {
  auto tape = std::make_unique<ReferenceTape>();
  int64_t scratch = 0;
  const int64_t m = options_.batch;
  const auto add_value = [&](const Shape& shape, bool gradient) {
    tape->values.emplace_back(index(m * element_count(shape)));
    tape->gradients.emplace_back(gradient && training() ? index(m * element_count(shape)) : 0);
  };
  if (segment_.begin > 0) {
    add_value(layer(segment_.begin - 1).output, wants_gradient_[0]);
  } else {
    add_value({0}, false);  // the pixels are read in place
  }
  for (int i = segment_.begin; i < segment_.end; ++i) {
    add_value(layer(i).output, wants_gradient_[place(i)]);
    const LayerCode* code = code_[place(i) - 1].get();
    tape->saved.emplace_back(code ? index(code->saved_floats(m)) : 0);
    if (code) scratch = std::max(scratch, code->scratch_doubles());
  }
  tape->scratch.resize(index(scratch));
  tape->statistics.resize(index(buffers_.size));
  tape->slots.reserve(index(m));
  tape->labels.reserve(index(m));
  return tape;
}

void ReferenceProgram::load(Weights& weights, std::span<const float> parameters,
                            std::span<const float> buffers) const {
  ensure(parameters.size() == index(parameters_.size) && buffers.size() == index(buffers_.size),
         "weights have the sizes of the segment's arenas");
  auto& mine = static_cast<ReferenceWeights&>(weights);
  mine.parameters.assign(parameters.begin(), parameters.end());
  mine.averages.assign(buffers.begin(), buffers.end());
}

Forward ReferenceProgram::forward_values(const ReferenceWeights& weights, ReferenceTape& tape,
                                         int i, int64_t samples) const {
  Forward values;
  for (size_t k = 0; k < layer(i).inputs.size(); ++k) {
    const int input = layer(i).inputs[k];
    values.inputs[k] = std::span(tape.values[place(input)])
                           .first(index(samples * element_count(layer(input).output)));
  }
  values.parameters = of_layer(std::span(weights.parameters), i);
  values.averages = averages_of(std::span(weights.averages), i);
  values.output =
      std::span(tape.values[place(i)]).first(index(samples * element_count(layer(i).output)));
  values.statistics = averages_of(std::span(tape.statistics), i);
  values.saved = tape.saved[place(i) - 1];
  values.scratch = tape.scratch;
  return values;
}

void ReferenceProgram::forward(const Weights& weights, Tape& tape, const ForwardInput& in,
                               const ForwardOutput& out) const {
  const auto& my_weights = static_cast<const ReferenceWeights&>(weights);
  auto& mine = static_cast<ReferenceTape&>(tape);
  ensure(in.count >= 1 && in.count <= options_.batch && (!training() || in.count == options_.batch),
         "training takes whole micro-batches, inference 1 to batch samples");
  ensure(!training() || in.slots.size() == index(in.count), "training has one slot a sample");
  ensure(in.input.type == input_spec().type, "the input has the program's type");
  mine.slots.assign(in.slots.begin(), in.slots.end());
  mine.labels.assign(in.labels.begin(), in.labels.end());

  const Run run{in.count, mine.slots, mine.labels};
  if (segment_.begin > 0) {
    load_values(in.input,
                std::span(mine.values[0])
                    .first(index(in.count * element_count(layer(segment_.begin - 1).output))));
  }
  for (int i = segment_.begin; i < segment_.end; ++i) {
    const Forward values = forward_values(my_weights, mine, i, in.count);
    if (const auto* operation = std::get_if<Normalize>(&layer(i).operation)) {
      normalize(*operation, in.input.as<uint8_t>().first(values.output.size()), values.output);
      continue;
    }
    code_[place(i) - 1]->forward(run, values);
    if (measures(layer(i))) {
      std::copy(values.statistics.begin(), values.statistics.end(),
                averages_of(out.statistics, i).begin());
    }
  }
  store_values(std::span(mine.values.back())
                   .first(index(in.count * element_count(layer(segment_.end - 1).output))),
               out.output);
}

Backward ReferenceProgram::backward_values(const ReferenceWeights& weights, ReferenceTape& tape,
                                           int i, std::span<float> gradients) const {
  Backward values;
  for (size_t k = 0; k < layer(i).inputs.size(); ++k) {
    values.inputs[k] = tape.values[place(layer(i).inputs[k])];
    values.input_gradients[k] = tape.gradients[place(layer(i).inputs[k])];
  }
  values.parameters = of_layer(std::span(weights.parameters), i);
  values.saved = tape.saved[place(i) - 1];
  values.output_gradient = tape.gradients[place(i)];
  values.scratch = tape.scratch;
  if (!layer(i).frozen) values.parameter_gradients = of_layer(gradients, i);
  return values;
}

void ReferenceProgram::backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                                const BackwardOutput& out) const {
  const auto& my_weights = static_cast<const ReferenceWeights&>(weights);
  auto& mine = static_cast<ReferenceTape&>(tape);
  ensure(training(), "only a training program has a backward pass");
  ensure(out.gradients.size() == index(parameters_.size),
         "gradients have the size of the segment's arena");
  std::fill(out.gradients.begin(), out.gradients.end(), 0.0f);
  for (auto& gradient : mine.gradients) std::fill(gradient.begin(), gradient.end(), 0.0f);
  if (!mine.gradients.back().empty()) load_values(output_gradient, mine.gradients.back());

  const Run run{options_.batch, mine.slots, mine.labels};
  for (int i = segment_.end - 1; i >= segment_.begin; --i) {
    if (!wants_gradient_[place(i)]) continue;
    code_[place(i) - 1]->backward(run, backward_values(my_weights, mine, i, out.gradients));
  }
  for (const Parameter& parameter : graph_.parameters()) {
    if (parameter.layer < segment_.begin || parameter.layer >= segment_.end || parameter.trainable)
      continue;
    std::fill_n(out.gradients.begin() + parameter.range.offset - parameters_.offset,
                parameter.range.size, 0.0f);
  }
  if (options_.input_gradient) store_values(mine.gradients.front(), out.input_gradient);
}

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool&) const override {
    check_options(graph, options);
    ensure(options.groups == 1, "the reference runs one micro-batch at a time");
    ensure(options.precision != Precision::kFloat16, "the reference has no float16");
    return std::make_unique<ReferenceProgram>(graph, options);
  }
};

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<reference::ReferenceBackend>();
}

}  // namespace outrigger::nn
