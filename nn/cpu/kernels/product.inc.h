#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/kernels/vector.h"

/// Matrix products, a few rows by one or two vectors of columns at a time, their sums in registers.
namespace {

using outrigger::nn::cpu::OverlapAdd;
using outrigger::nn::cpu::Product;

constexpr int kPanelVectors = 2;
constexpr int64_t kPanel = kPanelVectors * kLanes;

constexpr int kMostRows = 12;

// The first columns of a vector of which `values` exist.
template <bool kWhole>
inline Vector load_columns(const float* from, int64_t values) {
  if constexpr (kWhole) {
    return load(from);
  } else {
    return load_some(from, values, Vector{});
  }
}

// kWhole: the columns are so many whole vectors.
template <int kRows, int kVectors, bool kWhole>
inline void store_product(const Product& p, const Vector (&sums)[kRows][kVectors], float* result) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const int64_t last = p.columns - (kWidth - kLanes);
  // What a whole vector writes too much, this product's next rows write over.
  const bool in_order = !p.add && p.result_row == p.columns;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    const bool covered = in_order && (kRows - 1 - i) * p.result_row >= kWidth - p.columns;
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      float* to = result + i * p.result_row + j * kLanes;
      if (kWhole || j + 1 < kVectors || covered) {
        store(to, p.add ? load(to) + sums[i][j] : sums[i][j]);
      } else {
        store_some(to, last, p.add ? load_some(to, last, Vector{}) + sums[i][j] : sums[i][j]);
      }
    }
  }
}

template <int kRows, int kVectors, bool kWhole>
inline void product_rows(const Product& p, const float* a, float* result) {
  const int64_t last = p.columns - (kVectors - 1) * kLanes;
  const auto columns_of = [&](const float* from, int j) {
    return j + 1 < kVectors ? load(from + j * kLanes)
                            : load_columns<kWhole>(from + j * kLanes, last);
  };
  Vector sums[kRows][kVectors];
#pragma GCC unroll 2
  for (int j = 0; j < kVectors; ++j) {
    const Vector start = p.start != nullptr ? columns_of(p.start, j) : Vector{};
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) sums[i][j] = start;
  }
  const float* b = p.b;
  for (int64_t o = 0; o < p.outer; ++o, a += p.a_jump) {
    const float* from = a;
    for (int64_t k = 0; k < p.inner; ++k, from += p.a_step, b += p.b_step) {
      Vector columns[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) columns[j] = columns_of(b, j);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        const Vector value = broadcast(from[i * p.a_row]);
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) sums[i][j] = multiply_add(value, columns[j], sums[i][j]);
      }
    }
  }
  store_product<kRows, kVectors, kWhole>(p, sums, result);
}

template <int kRows, int kVectors, bool kWhole>
inline void product_some_rows(const Product& p, int64_t rows, const float* a, float* result) {
  if (rows == kRows) return product_rows<kRows, kVectors, kWhole>(p, a, result);
  if constexpr (kRows > 1) product_some_rows<kRows - 1, kVectors, kWhole>(p, rows, a, result);
}

// In groups of rows as equal as can be.
template <int kVectors, bool kWhole>
inline void product_columns(const Product& p) {
  constexpr int kMost = kMostSums / kVectors < kMostRows ? kMostSums / kVectors : kMostRows;
  const int64_t groups = (p.rows + kMost - 1) / kMost;
  const float* a = p.a;
  float* result = p.result;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t rows = p.rows / groups + (group < p.rows % groups ? 1 : 0);
    product_some_rows<kMost, kVectors, kWhole>(p, rows, a, result);
    a += rows * p.a_row;
    result += rows * p.result_row;
  }
}

void product(const Product& p) {
  if (p.columns == kPanel) return product_columns<2, true>(p);
  if (p.columns > kLanes) return product_columns<2, false>(p);
  if (p.columns == kLanes) return product_columns<1, true>(p);
  product_columns<1, false>(p);
}

// A vector of the row at a time: it is written once, and what it reads of runs that only touch it
// are zeros.
void overlap_add(const OverlapAdd& o) {
  int64_t first = 0, end = 0;  // the runs that touch the vector
  for (int64_t at = 0; at < o.width; at += kLanes) {
    while (end < o.count && end * o.step < at + kLanes) ++end;
    while (first < end && first * o.step + o.run <= at) ++first;
    Vector sum = load(o.row + at);
    for (int64_t i = first; i < end; ++i) sum += load(o.runs + i * o.run_row + at - i * o.step);
    store(o.row + at, sum);
  }
}

}  // namespace
