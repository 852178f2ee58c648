#include "nn/scorer.h"

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "nn/loss.h"

namespace outrigger::nn {
namespace {

/// Row `index` of a tensor of two and more dimensions, as a batch of one.
template <typename View>
View row_of(View all, int64_t index) {
  const size_t bytes = all.bytes() / static_cast<size_t>(all.shape[0]);
  all.data += static_cast<size_t>(index) * bytes;
  all.shape[0] = 1;
  return all;
}

/// Nothing of an image whose label is none of the network's classes.
LossResult loss_if_known(std::span<const float> logits, int32_t label) {
  const bool known = label >= 0 && static_cast<size_t>(label) < logits.size();
  return known ? sample_cross_entropy(logits, label) : LossResult{};
}

void copy_as_floats(const ConstTensorView& view, float* to) {
  if (view.type == ElementType::kBFloat16) {
    std::ranges::transform(view.as<uint16_t>(), to, from_bfloat16);
  } else {
    std::ranges::copy(view.as<float>(), to);
  }
}

}  // namespace

size_t score_width(const Graph& graph, bool embeddings) {
  if (!embeddings) return Score::kEmbedding;
  const Shape& embedding = graph.layers()[static_cast<size_t>(graph.embedding_layer())].output;
  return Score::kEmbedding + static_cast<size_t>(element_count(embedding));
}

Scorer::Scorer(const Graph& graph, const Backend& backend, ThreadPool& threads,
               ScorerOptions options)
    : graph_(graph),
      backend_(backend),
      threads_(threads),
      options_(options),
      embedding_end_(graph.embedding_layer() + 1),
      width_(score_width(graph, options.embeddings)) {}

void Scorer::prepare() {
  if (backbone_.program != nullptr) return;
  if (has_head()) prepare(head_, head());
  prepare(backbone_, backbone());
}

void Scorer::load(std::span<const float> parameters, std::span<const float> buffers) {
  prepare();
  load(backbone_, backbone(), parameters, buffers);
  if (has_head()) load(head_, head(), parameters, buffers);
}

void Scorer::prepare(Part& part, Segment segment) const {
  ProgramOptions options;
  options.segment = segment;
  options.batch = options_.batch;
  options.precision = options_.precision;
  options.mode = Mode::kInference;
  part.program = backend_.compile(graph_, options, threads_);
  part.weights = part.program->new_weights();
  part.tape = part.program->new_tape();
  part.output = Tensor(part.program->output_spec().type, part.program->output_spec().shape);
}

void Scorer::load(const Part& part, Segment segment, std::span<const float> parameters,
                  std::span<const float> buffers) const {
  part.program->load(*part.weights, part_of(parameters, graph_.parameter_range(segment)),
                     part_of(buffers, graph_.buffer_range(segment)));
}

void Scorer::forward(Part& part, const ConstTensorView& input, int64_t count) {
  part.program->forward(*part.weights, *part.tape, {input, count, {}, {}},
                        {part.output.view(), {}});
}

ConstTensorView Scorer::padded(const ConstTensorView& pixels) {
  const TensorSpec spec = backbone_.program->input_spec();
  ensure(pixels.type == spec.type && std::ranges::equal(std::span(pixels.shape).subspan(1),
                                                        std::span(spec.shape).subspan(1)),
         "images are what the network reads");
  if (pixels.shape == spec.shape) return pixels;
  if (full_.empty()) full_ = Tensor(spec.type, spec.shape);
  std::ranges::fill(full_.as<uint8_t>(), uint8_t{0});
  std::ranges::copy(pixels.raw(), full_.view().data);
  return std::as_const(full_).view();
}

std::span<const float> Scorer::score(const ConstTensorView& pixels,
                                     std::span<const int32_t> labels) {
  ensure(backbone_.program != nullptr, "weights are loaded before images are scored");
  const auto count = static_cast<int64_t>(labels.size());
  ensure(pixels.shape[0] == count && count <= options_.batch, "every image has a label");
  forward(backbone_, padded(pixels), count);
  if (has_head()) forward(head_, std::as_const(backbone_.output).view(), count);
  rows_.resize(labels.size() * width_);
  const ConstTensorView logits = last().output.view();
  threads_.parallel_for(static_cast<int>(count), [&](int index) {
    float* const row = rows_.data() + static_cast<size_t>(index) * width_;
    const auto loss =
        loss_if_known(row_of(logits, index).as<float>(), labels[static_cast<size_t>(index)]);
    row[Score::kLoss] = static_cast<float>(loss.loss_sum);
    row[Score::kCorrect] = static_cast<float>(loss.correct);
    if (options_.embeddings)
      copy_as_floats(row_of(std::as_const(backbone_.output).view(), index),
                     row + Score::kEmbedding);
  });
  return rows_;
}

}  // namespace outrigger::nn
