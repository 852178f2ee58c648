#pragma once

// Activations with slopes, and sums over columns.

#include "nn/cuda/kernels/columns.h"
#include "nn/cuda/kernels/pack.h"

namespace outrigger::nn::cuda {

template <typename T, int N>
struct PreluBackwardKernel {
  static constexpr int kWidth = N, kSums = 1;
  const T* x;
  const T* dy;
  const float* slopes;
  T* dx;  // null: nobody wants it
  bool add;
  float* slopes_gradient;  // likewise
  uint32_t channels;

  struct Column {
    uint32_t at;
    float slope[N];
  };
  OUTRIGGER_BOTH Column column(uint32_t, uint32_t at) const {
    Column column;
    column.at = at;
    load_each(slopes + at, column.slope);
    return column;
  }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const uint32_t i = row * channels + column.at;
    float value[N], gradient[N];
    load(x + i, value);
    load(dy + i, gradient);
    for (int j = 0; j < N; ++j) {
      if (value[j] > 0) continue;
      sums[j] += value[j] * gradient[j];
      gradient[j] *= column.slope[j];
    }
    if (dx != nullptr) save(dx + i, gradient, add);
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t c, const double* sums) const {
    if (slopes_gradient != nullptr) slopes_gradient[c] = static_cast<float>(sums[0]);
  }
};

/// Sums over columns of what is left of dy where a ReLU's y is 0, or, without y, of dy.
template <typename T, int N>
struct MaskSumsKernel {
  static constexpr int kWidth = N, kSums = 1;
  const T* y;
  const T* dy;
  T* masked;  // dy again; null without y
  float* out;
  uint32_t columns;

  using Column = PlainColumn;
  OUTRIGGER_BOTH Column column(uint32_t, uint32_t at) const { return {at}; }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const uint32_t i = row * columns + column.at;
    float gradient[N];
    load(dy + i, gradient);
    if (y != nullptr) {
      float sign[N];
      load(y + i, sign);
      for (int j = 0; j < N; ++j) gradient[j] = sign[j] <= 0 ? 0.0f : gradient[j];
      save(masked + i, gradient);
    }
    for (int j = 0; j < N; ++j) sums[j] += gradient[j];
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t column, const double* sums) const {
    out[column] = static_cast<float>(sums[0]);
  }
};

}  // namespace outrigger::nn::cuda
