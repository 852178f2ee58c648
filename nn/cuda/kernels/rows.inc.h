#pragma once

// Kernels over whole rows, for ArcFace. A launcher's rows(size, f) adds up f.term(row, column) over
// each row's columns, then calls f.finish(row, column, sum) for every column.

#include <cmath>

#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/margin.h"
#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {

template <typename From, typename To>
struct UnitRowsKernel {
  const From* x;
  To* unit;
  float* inverse;
  float least;
  uint32_t columns;
  OUTRIGGER_BOTH float term(uint32_t row, uint32_t column) const {
    const float value = to_float(x[row * columns + column]);
    return value * value;
  }
  OUTRIGGER_BOTH void finish(uint32_t row, uint32_t column, float sum) const {
    const float length = sqrtf(sum);
    const float factor = 1.0f / (length > least || length != length ? length : least);
    const uint32_t i = row * columns + column;
    store(unit + i, to_float(x[i]) * factor);
    if (column == 0) inverse[row] = factor;
  }
};

template <typename U, typename To>
struct UnitRowsBackwardKernel {
  const float* d;
  const U* unit;
  const float* inverse;
  To* dx;
  bool add;
  uint32_t columns;
  OUTRIGGER_BOTH float term(uint32_t row, uint32_t column) const {
    const uint32_t i = row * columns + column;
    return d[i] * to_float(unit[i]);
  }
  OUTRIGGER_BOTH void finish(uint32_t row, uint32_t column, float sum) const {
    const uint32_t i = row * columns + column;
    store(dx + i, (d[i] - sum * to_float(unit[i])) * inverse[row], add);
  }
};

struct MarginLogitsKernel {
  const float* cosines;
  const int32_t* labels;
  float margin, scale;
  float* logits;
  uint32_t columns;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t n = i / columns;
    const bool own = labels != nullptr && labels[n] == static_cast<int32_t>(i - n * columns);
    logits[i] = scale * (own ? margin_cosine(cosines[i], margin, false) : cosines[i]);
  }
};

template <typename T>
struct MarginSlopesKernel {
  const float* cosines;
  const int32_t* labels;
  float margin, scale;
  const float* d_logits;
  T* d_cosines;
  uint32_t columns;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t n = i / columns;
    const bool own = labels != nullptr && labels[n] == static_cast<int32_t>(i - n * columns);
    store(d_cosines + i,
          d_logits[i] * scale * (own ? margin_cosine(cosines[i], margin, true) : 1.0f));
  }
};

}  // namespace outrigger::nn::cuda
