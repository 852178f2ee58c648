#pragma once

// Batch norm and what is fused with it.

#include <cmath>

#include "nn/cuda/kernels/columns.h"
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

/// What is behind a norm, as far as kernels differ by it: branches would keep a thread from reading
/// its next row beside this one.
enum class Behind : uint8_t {
  kNothing,
  kRelu,
  kReluOfSum,  // with a residual: y says which way it went
  kPrelu,
};

/// `slopes` of N channels, where there are any.
template <int N, Behind kBehind>
struct NormSlopes {
  float of[N];
  OUTRIGGER_BOTH NormSlopes(const float* slopes, uint32_t first) {
    if constexpr (kBehind == Behind::kPrelu) load_each(slopes + first, of);
  }
};

template <typename T, int N, Behind kBehind>
struct NormForwardKernel {
  static constexpr int kWidth = N;
  NormForward norm;
  uint32_t channels;

  struct Column : NormColumn<N> {
    NormSlopes<N, kBehind> slopes;
  };
  OUTRIGGER_BOTH Column column(uint32_t group, uint32_t first) const {
    return {{norm.mean_inverse, norm.scale_shift, group, first, channels}, {norm.slopes, first}};
  }
  OUTRIGGER_BOTH void apply(const Column& column, uint32_t row) const {
    const uint32_t i = row * channels + column.at;
    float z[N], residual[N];
    load(static_cast<const T*>(norm.x.data) + i, z);
    load_if_there(static_cast<const T*>(norm.residual.data), i, residual);
    for (int j = 0; j < N; ++j) {
      z[j] = column.before(column.normalised(z[j], j), j) + residual[j];
      if constexpr (kBehind == Behind::kPrelu) {
        z[j] = z[j] > 0 ? z[j] : z[j] * column.slopes.of[j];
      } else if constexpr (kBehind != Behind::kNothing) {
        z[j] = z[j] <= 0 ? 0.0f : z[j];
      }
    }
    save(static_cast<T*>(norm.y.data) + i, z);
  }
};

/// What a backward pass needs of N channels of a group.
template <int N, Behind kBehind>
struct NormBackwardColumn : NormColumn<N> {
  NormSlopes<N, kBehind> slopes;
  OUTRIGGER_BOTH NormBackwardColumn(const NormBackward& norm, uint32_t group, uint32_t first,
                                    uint32_t channels)
      : NormColumn<N>(norm.mean_inverse, norm.scale_shift, group, first, channels),
        slopes(norm.slopes, first) {}
};

/// The gradient before the activation, of N channels of a row, and what it was made of.
template <typename T, int N, Behind kBehind>
struct NormGradient {
  float normalised[N], gradient[N], slope[N];

  OUTRIGGER_BOTH NormGradient(const NormBackward& norm,
                              const NormBackwardColumn<N, kBehind>& column, uint32_t i) {
    float sign[N] = {};
    load(static_cast<const T*>(norm.x.data) + i, normalised);
    load(static_cast<const T*>(norm.dy.data) + i, gradient);
    if constexpr (kBehind == Behind::kReluOfSum) load(static_cast<const T*>(norm.y.data) + i, sign);
    for (int j = 0; j < N; ++j) {
      normalised[j] = column.normalised(normalised[j], j);
      slope[j] = 0;
      if constexpr (kBehind == Behind::kNothing) continue;
      const float before =
          kBehind == Behind::kReluOfSum ? sign[j] : column.before(normalised[j], j);
      if constexpr (kBehind == Behind::kPrelu) {
        slope[j] = before > 0 ? 0.0f : before * gradient[j];
        gradient[j] = before > 0 ? gradient[j] : gradient[j] * column.slopes.of[j];
      } else {
        gradient[j] = before <= 0 ? 0.0f : gradient[j];
      }
    }
  }
};

template <typename T, int N, Behind kBehind>
struct NormSumsKernel {
  static constexpr int kWidth = N, kSums = kBehind == Behind::kPrelu ? 3 : 2;
  NormBackward norm;
  uint32_t channels;

  using Column = NormBackwardColumn<N, kBehind>;
  OUTRIGGER_BOTH Column column(uint32_t group, uint32_t first) const {
    return {norm, group, first, channels};
  }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const uint32_t i = row * channels + column.at;
    const NormGradient<T, N, kBehind> of(norm, column, i);
    if (norm.residual_gradient.data != nullptr)
      save(static_cast<T*>(norm.residual_gradient.data) + i, of.gradient, norm.add_residual);
    for (int j = 0; j < N; ++j) {
      sums[j] += of.gradient[j];
      sums[N + j] += of.gradient[j] * of.normalised[j];
      if constexpr (kSums > 2) sums[2 * N + j] += of.slope[j];
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
    if constexpr (kSums > 2) {
      if (norm.slopes_gradient != nullptr)
        store(norm.slopes_gradient + c, static_cast<float>(sums[2]), add);
    }
  }
};

template <typename T, int N, Behind kBehind>
struct NormInputKernel {
  static constexpr int kWidth = N;
  NormBackward norm;
  uint32_t channels;
  float share;  // 1 / a group's rows

  struct Column : NormBackwardColumn<N, kBehind> {
    float factor[N];         // from the gradient behind the norm to the one before it
    float mean_gradient[N];  // 0 where statistics are not this batch's
    float mean_product[N];   // likewise: of gradient and normalised value
    OUTRIGGER_BOTH Column(const NormInputKernel& kernel, uint32_t group, uint32_t first)
        : NormBackwardColumn<N, kBehind>(kernel.norm, group, first, kernel.channels) {
      const float* sums = kernel.norm.sums + group * 2 * kernel.channels + first;
      const bool measured = kernel.norm.measured;
      load_each(sums, mean_gradient);
      load_each(sums + kernel.channels, mean_product);
      for (int j = 0; j < N; ++j) {
        factor[j] = this->scale[j] * this->inverse[j];
        mean_gradient[j] = measured ? mean_gradient[j] * kernel.share : 0;
        mean_product[j] = measured ? mean_product[j] * kernel.share : 0;
      }
    }
  };
  OUTRIGGER_BOTH Column column(uint32_t group, uint32_t first) const {
    return {*this, group, first};
  }
  OUTRIGGER_BOTH void apply(const Column& column, uint32_t row) const {
    const uint32_t i = row * channels + column.at;
    NormGradient<T, N, kBehind> of(norm, column, i);
    for (int j = 0; j < N; ++j) {
      const float mean = column.mean_gradient[j] + of.normalised[j] * column.mean_product[j];
      of.gradient[j] -= norm.measured ? mean : 0.0f;  // an infinite x times 0 is no number
      of.gradient[j] *= column.factor[j];
    }
    save(static_cast<T*>(norm.dx.data) + i, of.gradient, norm.add);
  }
};

}  // namespace outrigger::nn::cuda
