#pragma once

#include "nn/cpu/kernels/elementwise.inc.h"
#include "nn/cpu/kernels/vector.h"

// What float32 alone has; see Kernels.
namespace {

void multiply(const float* a, const float* b, float* product, int64_t count) {
  for_each_vector(
      count, [&](int64_t i, int64_t n) { put(product + i, n, take(a + i, n) * take(b + i, n)); });
}
void accumulate(const float* values, float* sums, int64_t count) {
  for_each_vector(count, [&](int64_t i, int64_t n) {
    put(sums + i, n, take(sums + i, n) + take(values + i, n));
  });
}
void scale_by(const float* from, float factor, float* to, int64_t count) {
  for_each_vector(count, [&](int64_t i, int64_t n) { put(to + i, n, take(from + i, n) * factor); });
}
float dot(const float* a, const float* b, int64_t count) {
  Vector sum{};
  for_each_vector(count, [&](int64_t i, int64_t n) { sum += take(a + i, n) * take(b + i, n); });
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
  return total;
}

}  // namespace
