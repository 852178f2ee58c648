#pragma once

#include <cstdint>

namespace outrigger::nn::cpu::onednn {

/// A row-major matrix, or its transpose, within a larger one.
struct Matrix {
  const float* data = nullptr;
  int64_t stride = 0;  // floats from one row to the next, as it lies in memory
  bool transposed = false;
};

/// Sizes of result {rows, columns} = a {rows, inner} * b {inner, columns}.
struct GemmSizes {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t inner = 0;
};

/// The result, float32 with `stride` floats from row to row.
struct GemmResult {
  float* data = nullptr;
  int64_t stride = 0;
  bool add = false;  // to what is there
};

/// On the calling thread.
void gemm(const GemmSizes& sizes, const Matrix& a, const Matrix& b, const GemmResult& result);

}  // namespace outrigger::nn::cpu::onednn
