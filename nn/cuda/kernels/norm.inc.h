#pragma once

// Batch norm and what is fused with it, and activations with slopes.

#include <cmath>

#include "nn/cuda/kernels/columns.h"
#include "nn/cuda/kernels/elementwise.inc.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/pack.h"

namespace outrigger::nn::cuda {

OUTRIGGER_BOTH inline float inverse_deviation(double variance, float epsilon) {
  return static_cast<float>(1.0 / sqrt(variance + static_cast<double>(epsilon)));
}

/// Sums of distances from the column's first value: no digits are lost where a mean is far from
/// zero.
template <typename T, int N>
struct MeasureKernel {
  static constexpr int kWidth = N, kSums = 2;
  NormMeasure measure;
  Matrix group;  // rows of one, and columns

  struct Column {
    uint32_t at;
    float first[N];
  };
  OUTRIGGER_BOTH const T* x() const { return static_cast<const T*>(measure.x.data); }
  OUTRIGGER_BOTH Column column(uint32_t of, uint32_t at) const {
    Column column;
    column.at = at;
    load(x() + of * group.size() + at, column.first);
    return column;
  }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    float values[N];
    load(x() + row * group.columns + column.at, values);
    for (int j = 0; j < N; ++j) {
      const float distance = values[j] - column.first[j];
      sums[j] += distance;
      sums[N + j] += distance * distance;
    }
  }
  OUTRIGGER_BOTH void finish(uint32_t of, uint32_t column, const double* sums) const {
    const float first = to_float(x()[of * group.size() + column]);
    const double count = group.rows, shift = sums[0] / count;
    const double spread = sums[1] / count - shift * shift;
    const double variance = spread > 0 || spread != spread ? spread : 0.0;
    const auto mean = static_cast<float>(static_cast<double>(first) + shift);
    float* statistics = measure.statistics + of * measure.statistics_apart;
    float* mean_inverse = measure.mean_inverse + of * 2 * group.columns;
    statistics[column] = mean;
    statistics[group.columns + column] = static_cast<float>(variance);
    mean_inverse[column] = mean;
    mean_inverse[group.columns + column] = inverse_deviation(variance, measure.epsilon);
  }
};

/// The mean of squares less the square of the mean: for what has the digits of float16, whose sums
/// are float32.
struct FinishMeasureKernel {
  NormMeasure measure;
  Matrix size;
  OUTRIGGER_BOTH void operator()(uint32_t column) const {
    float* sum = measure.mean_inverse + column;
    float* squares = sum + size.columns;
    const double count = size.rows, mean = static_cast<double>(*sum) / count;
    const double spread = static_cast<double>(*squares) / count - mean * mean;
    const double variance = spread > 0 || spread != spread ? spread : 0.0;
    measure.statistics[column] = static_cast<float>(mean);
    measure.statistics[size.columns + column] = static_cast<float>(variance);
    *sum = static_cast<float>(mean);
    *squares = inverse_deviation(variance, measure.epsilon);
  }
};

struct PrepareNormKernel {
  const float* averages;
  float epsilon;
  float* mean_inverse;
  uint32_t channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t c = i % channels;
    float* to = mean_inverse + i / channels * 2 * channels;
    to[c] = averages[c];
    to[channels + c] = inverse_deviation(static_cast<double>(averages[channels + c]), epsilon);
  }
};

/// What a norm needs of N channels of a group: once, for many rows.
template <int N>
struct NormColumn {
  uint32_t at;
  float mean[N], inverse[N], scale[N], shift[N];

  OUTRIGGER_BOTH NormColumn(const float* mean_inverse, const float* scale_shift, uint32_t group,
                            uint32_t first, uint32_t channels)
      : at(first) {
    const float* measured = mean_inverse + group * 2 * channels + first;
    load_each(measured, mean);
    load_each(measured + channels, inverse);
    load_each(scale_shift + first, scale);
    load_each(scale_shift + channels + first, shift);
  }
  OUTRIGGER_BOTH float normalised(float x, int j) const { return (x - mean[j]) * inverse[j]; }
  /// The activation's input, without the residual.
  OUTRIGGER_BOTH float before(float normalised, int j) const {
    return normalised * scale[j] + shift[j];
  }
};

template <typename T, int N>
struct NormForwardKernel {
  static constexpr int kWidth = N;
  NormForward norm;
  uint32_t channels;

  using Column = NormColumn<N>;
  OUTRIGGER_BOTH Column column(uint32_t group, uint32_t first) const {
    return {norm.mean_inverse, norm.scale_shift, group, first, channels};
  }
  OUTRIGGER_BOTH void apply(const Column& column, uint32_t row) const {
    const uint32_t i = row * channels + column.at;
    float z[N];
    load(static_cast<const T*>(norm.x.data) + i, z);
    for (int j = 0; j < N; ++j) z[j] = column.before(column.normalised(z[j], j), j);
    if (norm.residual.data != nullptr) {
      float residual[N];
      load(static_cast<const T*>(norm.residual.data) + i, residual);
      for (int j = 0; j < N; ++j) z[j] += residual[j];
    }
    if (norm.relu) {
      for (int j = 0; j < N; ++j) z[j] = z[j] <= 0 ? 0.0f : z[j];
    }
    if (norm.slopes != nullptr) {
      for (int j = 0; j < N; ++j) z[j] = z[j] > 0 ? z[j] : z[j] * norm.slopes[column.at + j];
    }
    save(static_cast<T*>(norm.y.data) + i, z);
  }
};

/// The gradient before the activation, of N channels of a row, and what it was made of.
template <typename T, int N>
struct NormGradient {
  float normalised[N], gradient[N], slope[N];

  // With a residual, y says which way a ReLU went.
  OUTRIGGER_BOTH NormGradient(const NormBackward& norm, const NormColumn<N>& column, uint32_t i) {
    load(static_cast<const T*>(norm.x.data) + i, normalised);
    load(static_cast<const T*>(norm.dy.data) + i, gradient);
    for (int j = 0; j < N; ++j) {
      normalised[j] = column.normalised(normalised[j], j);
      slope[j] = 0;
    }
    if (norm.relu && norm.residual) {
      float sign[N];
      load(static_cast<const T*>(norm.y.data) + i, sign);
      for (int j = 0; j < N; ++j) gradient[j] = sign[j] <= 0 ? 0.0f : gradient[j];
    } else if (norm.relu) {
      for (int j = 0; j < N; ++j)
        gradient[j] = column.before(normalised[j], j) <= 0 ? 0.0f : gradient[j];
    } else if (norm.slopes != nullptr) {
      for (int j = 0; j < N; ++j) {
        const float before = column.before(normalised[j], j);
        if (before > 0) continue;
        slope[j] = before * gradient[j];
        gradient[j] *= norm.slopes[column.at + static_cast<uint32_t>(j)];
      }
    }
  }
};

template <typename T, int N>
struct NormSumsKernel {
  static constexpr int kWidth = N, kSums = 3;
  NormBackward norm;
  uint32_t channels;

  using Column = NormColumn<N>;
  OUTRIGGER_BOTH Column column(uint32_t group, uint32_t first) const {
    return {norm.mean_inverse, norm.scale_shift, group, first, channels};
  }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const uint32_t i = row * channels + column.at;
    const NormGradient<T, N> of(norm, column, i);
    if (norm.residual_gradient.data != nullptr)
      save(static_cast<T*>(norm.residual_gradient.data) + i, of.gradient, norm.add_residual);
    for (int j = 0; j < N; ++j) {
      sums[j] += of.gradient[j];
      sums[N + j] += of.gradient[j] * of.normalised[j];
      sums[2 * N + j] += of.slope[j];
    }
  }
  OUTRIGGER_BOTH void finish(uint32_t group, uint32_t c, const double* sums) const {
    float* to = norm.sums + group * 2 * channels;
    to[c] = static_cast<float>(sums[0]);
    to[channels + c] = static_cast<float>(sums[1]);
    const bool add = group > 0;
    if (norm.scale_shift_gradient != nullptr) {
      store(norm.scale_shift_gradient + c, to[channels + c], add);
      store(norm.scale_shift_gradient + channels + c, to[c], add);
    }
    if (norm.slopes_gradient != nullptr)
      store(norm.slopes_gradient + c, static_cast<float>(sums[2]), add);
  }
};

template <typename T, int N>
struct NormInputKernel {
  static constexpr int kWidth = N;
  NormBackward norm;
  uint32_t channels;
  float share;  // 1 / a group's rows

  struct Column : NormColumn<N> {
    float factor[N];         // from the gradient behind the norm to the one before it
    float mean_gradient[N];  // 0 where statistics are not this batch's
    float mean_product[N];   // likewise: of gradient and normalised value
  };
  OUTRIGGER_BOTH Column column(uint32_t group, uint32_t first) const {
    Column column{{norm.mean_inverse, norm.scale_shift, group, first, channels}, {}, {}, {}};
    const float* sums = norm.sums + group * 2 * channels + first;
    const float of = norm.measured ? share : 0;
    for (int j = 0; j < N; ++j) {
      column.factor[j] = column.scale[j] * column.inverse[j];
      column.mean_gradient[j] = sums[j] * of;
      column.mean_product[j] = sums[channels + static_cast<uint32_t>(j)] * of;
    }
    return column;
  }
  OUTRIGGER_BOTH void apply(const Column& column, uint32_t row) const {
    const uint32_t i = row * channels + column.at;
    NormGradient<T, N> of(norm, column, i);
    for (int j = 0; j < N; ++j) {
      of.gradient[j] -= column.mean_gradient[j] + of.normalised[j] * column.mean_product[j];
      of.gradient[j] *= column.factor[j];
    }
    save(static_cast<T*>(norm.dx.data) + i, of.gradient, norm.add);
  }
};

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
