#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nn/graph.h"

namespace outrigger::nn {

struct SgdOptions {
  float momentum = 0.0f;
  bool nesterov = false;
  float weight_decay = 0.0f;
  bool decay_norm_and_bias = false;  // also on norms, biases and slopes
};

/// Sum of squares of `values` over what trains, in double and in fixed blocks, so that threads do
/// not matter; its root is the global norm that clipping compares.
double sum_of_squares(const Graph& graph, std::span<const float> values);

/// Stochastic gradient descent as PyTorch's (Sutskever's momentum without dampening). Arenas are
/// whole-model. `gradients` are means over the batch. `momentum` has parameter_count() floats, zero
/// before the first step.
void sgd_step(const Graph& graph, const SgdOptions& options, float learning_rate,
              std::span<const float> gradients, std::span<float> momentum,
              std::span<float> parameters);

/// Of one group of parameters.
struct SgdStep {
  float learning_rate = 0;
  float decay = 0;  // of its weights
};
/// The same for values that share a weight decay; spans of one size.
void sgd_values(const SgdOptions& options, const SgdStep& step, std::span<const float> gradients,
                std::span<float> momentum, std::span<float> parameters);

/// averaged = decay * averaged + (1 - decay) * parameters, element by element.
void average_weights(float decay, std::span<const float> parameters, std::span<float> averaged);

/// Folds one micro-batch's batch-norm statistics (biased variance over `samples` samples) into the
/// running averages: running = (1 - momentum) * running + momentum * batch, with the unbiased
/// variance, as PyTorch does. Both spans cover buffer_range(segment). Frozen norms are left alone.
void update_running_averages(const Graph& graph, Segment segment, int64_t samples,
                             std::span<const float> statistics, std::span<float> buffers);

}  // namespace outrigger::nn
