#include "nn/optimizer.h"

#include <algorithm>

#include "common/error.h"

namespace outrigger::nn {
namespace {

bool decays_by_default(ParameterKind kind) { return kind == ParameterKind::kWeight; }

// In blocks, so that the order of additions is a property of the data and not of how it is split
// among threads.
double block_sums(std::span<const float> values) {
  constexpr size_t kBlock = 4096;
  double sum = 0;
  for (size_t first = 0; first < values.size(); first += kBlock) {
    double block = 0;
    for (const float value : values.subspan(first, std::min(kBlock, values.size() - first))) {
      block += double{value} * value;
    }
    sum += block;
  }
  return sum;
}

}  // namespace

double sum_of_squares(const Graph& graph, std::span<const float> values) {
  double sum = 0;
  for (const Parameter& parameter : graph.parameters()) {
    if (!parameter.trainable) continue;
    sum += block_sums(part_of(values, parameter.range));
  }
  return sum;
}

void sgd_step(const Graph& graph, const SgdOptions& options, float learning_rate,
              std::span<const float> gradients, std::span<float> momentum,
              std::span<float> parameters) {
  const auto count = static_cast<size_t>(graph.parameter_count());
  ensure(gradients.size() == count && momentum.size() == count && parameters.size() == count,
         "an optimizer step covers the whole model");
  for (const Parameter& parameter : graph.parameters()) {
    if (!parameter.trainable) continue;
    const bool decays = options.decay_norm_and_bias || decays_by_default(parameter.kind);
    const float decay = decays ? options.weight_decay : 0.0f;
    sgd_values(options, {learning_rate, decay}, part_of(gradients, parameter.range),
               part_of(momentum, parameter.range), part_of(parameters, parameter.range));
  }
}

void sgd_values(const SgdOptions& options, const SgdStep& step, std::span<const float> gradients,
                std::span<float> momentum, std::span<float> parameters) {
  ensure(gradients.size() == parameters.size() && momentum.size() == parameters.size(),
         "an optimizer step has a gradient and a momentum for each parameter");
  for (size_t i = 0; i < parameters.size(); ++i) {
    const float gradient = gradients[i] + step.decay * parameters[i];
    momentum[i] = options.momentum * momentum[i] + gradient;
    const float direction =
        options.nesterov ? gradient + options.momentum * momentum[i] : momentum[i];
    parameters[i] -= step.learning_rate * direction;
  }
}

void average_weights(float decay, std::span<const float> parameters, std::span<float> averaged) {
  ensure(parameters.size() == averaged.size(), "averaged weights have the model's size");
  for (size_t i = 0; i < parameters.size(); ++i) {
    averaged[i] = decay * averaged[i] + (1.0f - decay) * parameters[i];
  }
}

void update_running_averages(const Graph& graph, Segment segment, int64_t samples,
                             std::span<const float> statistics, std::span<float> buffers) {
  const Range range = graph.buffer_range(segment);
  ensure(
      statistics.size() == static_cast<size_t>(range.size) && buffers.size() == statistics.size(),
      "statistics and averages cover the segment's norms");
  for (const NormBuffer& buffer : graph.buffers()) {
    if (buffer.layer < segment.begin || buffer.layer >= segment.end) continue;
    if (graph.layers()[static_cast<size_t>(buffer.layer)].frozen) continue;
    const auto channels = static_cast<size_t>(buffer.channels);
    const auto first = static_cast<size_t>(buffer.range.offset - range.offset);
    const auto values = static_cast<float>(samples * buffer.values_per_sample);
    const float unbiased = values > 1 ? values / (values - 1) : 1.0f;
    for (size_t c = 0; c < 2 * channels; ++c) {
      const float batch = statistics[first + c] * (c < channels ? 1.0f : unbiased);
      buffers[first + c] = (1.0f - buffer.momentum) * buffers[first + c] + buffer.momentum * batch;
    }
  }
}

}  // namespace outrigger::nn
