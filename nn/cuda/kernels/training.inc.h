#pragma once

// What ends a step: the loss, sums of gradients, and the optimizer. A launcher's
// row_states(size, f) merges f.term(row, column) over each row's columns, from f.none(), in an
// order of its own, then calls f.finish(row, column, state) for every column.

#include <cmath>

#include "nn/cuda/kernels/columns.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {

/// A row of logits so far: log sum exp(z) = largest + log(exp_sum). No initialisers: it lies in
/// shared memory.
struct SoftmaxState {
  float largest;
  float exp_sum;  // of exp(z - largest); 1 at least, 0 where there is no logit yet
  float sum;      // of z
  uint32_t best;  // column of the largest, the first of equals
};

OUTRIGGER_BOTH inline SoftmaxState merge_softmax(const SoftmaxState& a, const SoftmaxState& b) {
  if (b.exp_sum == 0) return a;
  if (a.exp_sum == 0) return b;
  const bool second = b.largest > a.largest || (b.largest == a.largest && b.best < a.best);
  const SoftmaxState& larger = second ? b : a;
  const SoftmaxState& smaller = second ? a : b;
  return {larger.largest, larger.exp_sum + smaller.exp_sum * expf(smaller.largest - larger.largest),
          a.sum + b.sum, larger.best};
}

/// As softmax_cross_entropy (nn/loss.h). results {rows, 2}: the loss, and 1 where the label is the
/// best.
struct SoftmaxLossKernel {
  using State = SoftmaxState;
  const float* logits;
  const int32_t* labels;
  float smoothing;
  float scale;
  float* gradient;
  float* results;
  uint32_t columns;

  OUTRIGGER_BOTH State none() const { return {0, 0, 0, 0}; }
  OUTRIGGER_BOTH State term(uint32_t row, uint32_t column) const {
    const float z = logits[row * columns + column];
    return {z, 1, z, column};
  }
  OUTRIGGER_BOTH State merge(const State& a, const State& b) const { return merge_softmax(a, b); }
  OUTRIGGER_BOTH void finish(uint32_t row, uint32_t column, const State& state) const {
    const uint32_t i = row * columns + column;
    const auto label = static_cast<uint32_t>(labels[row]);
    const float even = smoothing / static_cast<float>(columns);
    const float target = even + (column == label ? 1.0f - smoothing : 0.0f);
    gradient[i] = scale * (expf(logits[i] - state.largest) / state.exp_sum - target);
    if (column != 0) return;
    const float mean = state.sum / static_cast<float>(columns);
    results[2 * row] = state.largest + logf(state.exp_sum) -
                       (1.0f - smoothing) * logits[row * columns + label] - smoothing * mean;
    results[2 * row + 1] = state.best == label ? 1.0f : 0.0f;
  }
};

/// to += from * factor, or to *= factor where there is no from.
struct ScaleAddKernel {
  const float* from;
  float factor;
  float* to;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    to[i] = from == nullptr ? to[i] * factor : to[i] + from[i] * factor;
  }
};

/// Sums over an array, as columns of a matrix whose last row may end early: of squares, and of what
/// is 0 unless a value is not finite. out {2, columns}, in double.
struct NormOfArrayKernel {
  static constexpr int kWidth = 1, kSums = 2;
  const float* values;
  uint32_t count;
  uint32_t columns;
  double* out;

  using Column = PlainColumn;
  OUTRIGGER_BOTH Column column(uint32_t, uint32_t at) const { return {at}; }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const uint32_t i = row * columns + column.at;
    if (i >= count) return;
    sums[0] += values[i] * values[i];
    sums[1] += values[i] * 0.0f;
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t column, const double* sums) const {
    out[column] = sums[0];
    out[columns + column] = sums[1];
  }
};

// One thread adds: a thousand numbers, and always in the same order.
OUTRIGGER_BOTH inline double add_up(const double* sums) {
  double all = 0;
  for (uint32_t i = 0; i < kNormColumns; ++i) all += sums[i];
  return all;
}

OUTRIGGER_BOTH inline bool finite(double value) { return value - value == 0; }

struct PrepareSgdKernel {
  const double* sums;
  SgdState* state;
  OUTRIGGER_BOTH void operator()(uint32_t) const {
    double norm = sqrt(add_up(sums)) * static_cast<double>(state->factors.mean);
    if (state->other_squares != 0) norm = sqrt(norm * norm + state->other_squares);
    state->gradient_norm = norm;
    const bool clips = state->clip_norm > 0 && norm > state->clip_norm;
    state->factors.shrink = clips ? static_cast<float>(state->clip_norm / norm) : 1.0f;
  }
};

struct FinishSgdKernel {
  const double* sums;
  SgdState* state;
  OUTRIGGER_BOTH void operator()(uint32_t) const { state->zeros = add_up(sums + kNormColumns); }
};

/// sgd_step and average_weights (nn/optimizer.h), for one parameter.
struct SgdKernel {
  SgdArrays arrays;
  const SgdState* state;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    if (!finite(state->gradient_norm)) return;
    const SgdFactors& factors = state->factors;
    uint32_t range = arrays.first[i / kOptimizerBlock];
    while (i >= arrays.ranges[range].end) ++range;
    const OptimizerRange& rule = arrays.ranges[range];
    float value = arrays.parameters[i];
    if (rule.trains) {
      const float mean = arrays.gradients[i] * factors.mean * factors.shrink;
      const float gradient = mean + rule.decay * value;
      const float momentum = factors.momentum * arrays.momentum[i] + gradient;
      arrays.momentum[i] = momentum;
      value -= factors.learning_rate *
               (factors.nesterov ? gradient + factors.momentum * momentum : momentum);
      arrays.parameters[i] = value;
    }
    if (arrays.averaged != nullptr) {
      arrays.averaged[i] =
          factors.average_decay * arrays.averaged[i] + (1.0f - factors.average_decay) * value;
    }
  }
};

}  // namespace outrigger::nn::cuda
