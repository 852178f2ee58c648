#pragma once

// Batch norm and what is fused with it, and activations with slopes. A launcher's
// grouped_columns(size, groups, f) gathers f.term(group, row, column) over the rows of each group,
// column by column, and calls f.finish(group, column, sums in double) once for each, for one column
// after the other group, in order. columns(size, f) is the same of one group, which f is not told.

#include <cmath>

#include "nn/cuda/kernels/elementwise.inc.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {

OUTRIGGER_BOTH inline float inverse_deviation(double variance, float epsilon) {
  return static_cast<float>(1.0 / sqrt(variance + static_cast<double>(epsilon)));
}

/// Sums of distances from the column's first value: no digits are lost where a mean is far from
/// zero.
template <typename T>
struct MeasureKernel {
  NormMeasure measure;
  Matrix group;  // rows of one, and columns
  OUTRIGGER_BOTH float first(uint32_t of, uint32_t column) const {
    return to_float(static_cast<const T*>(measure.x.data)[of * group.size() + column]);
  }
  OUTRIGGER_BOTH Sums<float> term(uint32_t of, uint32_t row, uint32_t column) const {
    const T* x = static_cast<const T*>(measure.x.data);
    const float distance = to_float(x[row * group.columns + column]) - first(of, column);
    return {distance, distance * distance, 0};
  }
  OUTRIGGER_BOTH void finish(uint32_t of, uint32_t column, const Sums<double>& sums) const {
    const double count = group.rows, shift = sums.a / count;
    const double spread = sums.b / count - shift * shift;
    const double variance = spread > 0 || spread != spread ? spread : 0.0;
    const auto mean = static_cast<float>(static_cast<double>(first(of, column)) + shift);
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

/// The group of an element; `per_group` elements each, 0: there is one group.
OUTRIGGER_BOTH inline uint32_t group_of(uint32_t i, uint32_t per_group) {
  return per_group == 0 ? 0 : i / per_group;
}

/// One element's way through norm, residual and activation.
struct NormElement {
  float normalised;
  float before;  // the activation's input, without the residual
};

OUTRIGGER_BOTH inline NormElement norm_element(float x, const float* mean_inverse,
                                               const float* scale_shift, uint32_t c,
                                               uint32_t channels) {
  const float normalised = (x - mean_inverse[c]) * mean_inverse[channels + c];
  return {normalised, normalised * scale_shift[c] + scale_shift[channels + c]};
}

template <typename T>
struct NormForwardKernel {
  NormForward norm;
  uint32_t channels, per_group;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t c = i % channels;
    const float x = to_float(static_cast<const T*>(norm.x.data)[i]);
    const float* mean_inverse = norm.mean_inverse + group_of(i, per_group) * 2 * channels;
    float z = norm_element(x, mean_inverse, norm.scale_shift, c, channels).before;
    if (norm.residual.data != nullptr) z += to_float(static_cast<const T*>(norm.residual.data)[i]);
    if (norm.relu && z <= 0) z = 0;
    if (norm.slopes != nullptr && !(z > 0)) z *= norm.slopes[c];
    store(static_cast<T*>(norm.y.data) + i, z);
  }
};

/// The gradient before the activation. With a residual, y says which way a ReLU went.
template <typename T>
OUTRIGGER_BOTH inline float norm_gradient(const NormBackward& norm, const NormElement& element,
                                          uint32_t i, uint32_t c) {
  const float dy = to_float(static_cast<const T*>(norm.dy.data)[i]);
  if (norm.relu) {
    const float sign =
        norm.residual ? to_float(static_cast<const T*>(norm.y.data)[i]) : element.before;
    return sign <= 0 ? 0.0f : dy;
  }
  if (norm.slopes != nullptr && !(element.before > 0)) return dy * norm.slopes[c];
  return dy;
}

template <typename T>
OUTRIGGER_BOTH inline NormElement norm_element_at(const NormBackward& norm, uint32_t group,
                                                  uint32_t i, uint32_t c, uint32_t channels) {
  return norm_element(to_float(static_cast<const T*>(norm.x.data)[i]),
                      norm.mean_inverse + group * 2 * channels, norm.scale_shift, c, channels);
}

template <typename T>
struct NormSumsKernel {
  NormBackward norm;
  uint32_t channels;
  OUTRIGGER_BOTH Sums<float> term(uint32_t group, uint32_t row, uint32_t c) const {
    const uint32_t i = row * channels + c;
    const NormElement element = norm_element_at<T>(norm, group, i, c, channels);
    const float gradient = norm_gradient<T>(norm, element, i, c);
    if (norm.residual_gradient.data != nullptr)
      store(static_cast<T*>(norm.residual_gradient.data) + i, gradient, norm.add_residual);
    float slope = 0;
    if (norm.slopes != nullptr && !(element.before > 0))
      slope = element.before * to_float(static_cast<const T*>(norm.dy.data)[i]);
    return {gradient, gradient * element.normalised, slope};
  }
  OUTRIGGER_BOTH void finish(uint32_t group, uint32_t c, const Sums<double>& sums) const {
    float* to = norm.sums + group * 2 * channels;
    to[c] = static_cast<float>(sums.a);
    to[channels + c] = static_cast<float>(sums.b);
    const bool add = group > 0;
    if (norm.scale_shift_gradient != nullptr) {
      store(norm.scale_shift_gradient + c, to[channels + c], add);
      store(norm.scale_shift_gradient + channels + c, to[c], add);
    }
    if (norm.slopes_gradient != nullptr)
      store(norm.slopes_gradient + c, static_cast<float>(sums.c), add);
  }
};

template <typename T>
struct NormInputKernel {
  NormBackward norm;
  uint32_t channels, per_group;
  float share;  // 1 / a group's rows
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t c = i % channels, group = group_of(i, per_group);
    const NormElement element = norm_element_at<T>(norm, group, i, c, channels);
    const float* sums = norm.sums + group * 2 * channels;
    float gradient = norm_gradient<T>(norm, element, i, c);
    if (norm.measured) gradient -= (sums[c] + element.normalised * sums[channels + c]) * share;
    const float inverse = norm.mean_inverse[(group * 2 + 1) * channels + c];
    store(static_cast<T*>(norm.dx.data) + i, gradient * norm.scale_shift[c] * inverse, norm.add);
  }
};

template <typename T>
struct PreluBackwardKernel {
  const T* x;
  const T* dy;
  const float* slopes;
  T* dx;  // null: nobody wants it
  bool add;
  float* slopes_gradient;  // likewise
  uint32_t channels;
  OUTRIGGER_BOTH Sums<float> term(uint32_t row, uint32_t c) const {
    const uint32_t i = row * channels + c;
    const float value = to_float(x[i]), gradient = to_float(dy[i]);
    if (dx != nullptr) store(dx + i, value > 0 ? gradient : gradient * slopes[c], add);
    return {value > 0 ? 0.0f : value * gradient, 0, 0};
  }
  OUTRIGGER_BOTH void finish(uint32_t c, const Sums<double>& sums) const {
    if (slopes_gradient != nullptr) slopes_gradient[c] = static_cast<float>(sums.a);
  }
};

template <typename T>
struct MaskSumsKernel {
  ReluMask<T> mask;
  float* out;
  uint32_t columns;
  OUTRIGGER_BOTH Sums<float> term(uint32_t row, uint32_t column) const {
    const uint32_t i = row * columns + column;
    mask(i);
    return {to_float(mask.dy[i]), 0, 0};
  }
  OUTRIGGER_BOTH void finish(uint32_t column, const Sums<double>& sums) const {
    out[column] = static_cast<float>(sums.a);
  }
};

template <typename T>
struct SumColumnsKernel {
  const T* x;
  float* out;
  uint32_t columns;
  OUTRIGGER_BOTH Sums<float> term(uint32_t row, uint32_t column) const {
    return {to_float(x[row * columns + column]), 0, 0};
  }
  OUTRIGGER_BOTH void finish(uint32_t column, const Sums<double>& sums) const {
    out[column] = static_cast<float>(sums.a);
  }
};

}  // namespace outrigger::nn::cuda
