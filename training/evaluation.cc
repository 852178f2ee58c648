#include "training/evaluation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/error.h"
#include "nn/loss.h"
#include "training/metrics.h"
#include "training/verification.h"

namespace outrigger::training {
namespace {

/// The first `count` rows of a tensor as it is, and as floats.
ConstTensorView rows(const Tensor& tensor, int64_t count) {
  ConstTensorView view = tensor.view();
  view.shape[0] = count;
  return view;
}

void append_as_floats(const ConstTensorView& view, std::vector<float>& all) {
  if (view.type == ElementType::kBFloat16) {
    for (const uint16_t bits : view.as<uint16_t>()) all.push_back(from_bfloat16(bits));
  } else {
    const auto values = view.as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
}

/// Pads a partial batch: a program's input has its full shape and the first `count` samples count.
ConstTensorView padded(ConstTensorView input, const Shape& full, Tensor& storage) {
  if (input.shape == full) return input;
  if (storage.empty()) storage = Tensor(input.type, full);
  std::ranges::fill(storage.as<uint8_t>(), uint8_t{0});
  std::ranges::copy(input.raw(), storage.view().data);
  return storage.view();
}

void add_face_metrics(std::span<const float> embeddings, std::span<const int32_t> labels,
                      EvaluationResult& result) {
  const LabelledRows all{embeddings, static_cast<int64_t>(embeddings.size() / labels.size()),
                         labels};
  try {
    result.verification = verify(all, draw_pairs(labels)).accuracy;
  } catch (const InvalidInput&) {
    // Too few images of one person for pairs: absent.
  }
  const GallerySplit split = split_gallery(labels);
  if (!split.probes.empty()) result.identification = rank1(all, split);
}

}  // namespace

Evaluator::Evaluator(const nn::Graph& graph, const nn::Backend& backend, ThreadPool& threads,
                     nn::Precision precision, int64_t batch)
    : graph_(graph),
      backend_(backend),
      threads_(threads),
      precision_(precision),
      batch_(batch),
      embedding_end_(graph.embedding_layer() + 1) {}

Evaluator::Part Evaluator::make_part(nn::Segment segment) const {
  Part part;
  part.program = backend_.compile(
      graph_,
      {.segment = segment, .batch = batch_, .precision = precision_, .mode = nn::Mode::kInference},
      threads_);
  part.weights = part.program->new_weights();
  part.tape = part.program->new_tape();
  part.output = Tensor(part.program->output_spec().type, part.program->output_spec().shape);
  return part;
}

void Evaluator::load(Part& part, nn::Segment segment, std::span<const float> parameters,
                     std::span<const float> buffers) const {
  if (part.program == nullptr) part = make_part(segment);
  part.program->load(*part.weights, nn::part_of(parameters, graph_.parameter_range(segment)),
                     nn::part_of(buffers, graph_.buffer_range(segment)));
}

void Evaluator::forward(Part& part, const ConstTensorView& input, int64_t count) const {
  part.program->forward(*part.weights, *part.tape, {input, count, {}, {}},
                        {part.output.view(), {}});
}

EvaluationResult Evaluator::run(feed::Feed& feed, const data::Dataset& dataset,
                                std::span<const float> parameters, std::span<const float> buffers,
                                bool faces) {
  const bool has_head = embedding_end_ < graph_.size();
  load(backbone_, {0, embedding_end_}, parameters, buffers);
  if (has_head) load(head_, {embedding_end_, graph_.size()}, parameters, buffers);
  EvaluationResult result;
  int64_t correct = 0;
  std::vector<float> embeddings;
  std::vector<int32_t> labels;
  Tensor storage;
  Tensor gradient(ElementType::kFloat32, (has_head ? head_ : backbone_).output.shape());
  const uint32_t batches = feed.begin_evaluation(dataset, static_cast<uint32_t>(batch_));
  for (uint32_t index = 0; index < batches; ++index) {
    const feed::ReadyMicroBatch batch = feed.take_evaluation(index);
    const auto count = static_cast<int64_t>(batch.slots.size());
    if (count == 0) continue;
    forward(backbone_, padded(batch.tensor->view(), backbone_.program->input_spec().shape, storage),
            count);
    if (has_head) forward(head_, std::as_const(backbone_.output).view(), count);
    TensorView gradient_rows = gradient.view();
    gradient_rows.shape[0] = count;
    const auto loss = nn::softmax_cross_entropy(
        rows(has_head ? head_.output : backbone_.output, count), batch.labels, 0, gradient_rows);
    result.loss += loss.loss_sum;
    correct += loss.correct;
    result.samples += count;
    if (faces) append_as_floats(rows(backbone_.output, count), embeddings);
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  feed.end_evaluation();
  result.broken = static_cast<int64_t>(dataset.size()) - result.samples;
  if (result.samples == 0) return result;
  result.loss /= static_cast<double>(result.samples);
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.samples);
  if (faces) add_face_metrics(embeddings, labels, result);
  return result;
}

}  // namespace outrigger::training
