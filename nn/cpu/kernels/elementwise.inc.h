#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/kernels/norm.inc.h"
#include "nn/cpu/kernels/vector.h"

/// Loops that take each value once.
namespace {

// body(offset, values): a vector's at a time, then what is left.
template <typename Body>
inline void for_each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
  if (i < count) body(i, count - i);
}
// The same where coefficients repeat: body(offset, place in the period, values).
template <typename Body>
inline void for_each_vector(int64_t count, int64_t period, const Body& body) {
  for (int64_t row = 0; row < count; row += period) {
    const int64_t rest = count - row < period ? count - row : period;
    for_each_vector(rest, [&](int64_t place, int64_t values) { body(row + place, place, values); });
  }
}
template <typename T>
inline Vector take(const T* from, int64_t values) {
  return values == kLanes ? load(from) : load_some(from, values, Vector{});
}
template <typename T>
inline void put(T* to, int64_t values, Vector value) {
  values == kLanes ? store(to, value) : store_some(to, values, value);
}

template <typename T>
void relu_forward(const T* x, T* y, int64_t count) {
  for_each_vector(count, [&](int64_t i, int64_t n) {
    const Vector value = take(x + i, n);
    put(y + i, n, select(value <= 0.0f, Vector{}, value));
  });
}
template <typename T>
void relu_backward(const T* y, const T* dy, T* dx, int64_t count) {
  for_each_vector(count, [&](int64_t i, int64_t n) {
    put(dx + i, n, zero_unless(take(y + i, n) > 0.0f, take(dy + i, n)));
  });
}
template <typename T>
void prelu_forward(const T* x, const float* slope, T* y, int64_t count, int64_t period) {
  for_each_vector(count, period, [&](int64_t i, int64_t place, int64_t n) {
    const Vector value = take(x + i, n);
    put(y + i, n, select(value > 0.0f, value, value * load(slope + place)));
  });
}
template <typename T>
void prelu_backward(const T* x, const float* slope, const T* dy, T* dx, float* slope_sums,
                    int64_t count, int64_t period) {
  for (int64_t i = 0; i < period; i += kLanes) store(slope_sums + i, Vector{});
  for_each_vector(count, period, [&](int64_t i, int64_t place, int64_t n) {
    const Vector value = take(x + i, n), gradient = take(dy + i, n);
    const Mask passes = value > 0.0f;
    store(slope_sums + place, load(slope_sums + place) + zero_unless(~passes, value * gradient));
    if (dx) put(dx + i, n, select(passes, gradient, gradient * load(slope + place)));
  });
}
template <typename T>
void add(const T* a, const T* b, T* sum, int64_t count) {
  for_each_vector(count,
                  [&](int64_t i, int64_t n) { put(sum + i, n, take(a + i, n) + take(b + i, n)); });
}
template <typename T>
void column_sums(const T* x, int64_t count, int64_t period, float* sums) {
  for (int64_t i = 0; i < period; i += kLanes) store(sums + i, Vector{});
  for_each_vector(count, period, [&](int64_t i, int64_t place, int64_t n) {
    store(sums + place, load(sums + place) + take(x + i, n));
  });
}
inline Vector load_pixels(const uint8_t* from, int64_t values) {
  if (values == kLanes) return to_floats(widen(from));
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < values; ++i) lanes[i] = static_cast<float>(from[i]);
  return load(lanes);
}
template <typename T>
void normalize(const uint8_t* pixels, const float* mean, const float* scale, T* y, int64_t count,
               int64_t period) {
  for_each_vector(count, period, [&](int64_t i, int64_t place, int64_t n) {
    put(y + i, n, (load_pixels(pixels + i, n) - load(mean + place)) * load(scale + place));
  });
}

template <typename T>
void to_float(const T* from, float* to, int64_t count) {
  for_each_vector(count, [&](int64_t i, int64_t n) { put(to + i, n, take(from + i, n)); });
}
template <typename T>
void from_float(const float* from, T* to, int64_t count) {
  for_each_vector(count, [&](int64_t i, int64_t n) { put(to + i, n, take(from + i, n)); });
}

}  // namespace
