#pragma once

// From how arrays are stored to types that kernels are made of.

#include <type_traits>

#include "common/error.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/pack.h"

namespace outrigger::nn::cuda {

/// Calls f(T{}) with the array's element type.
template <typename F>
void with_type(Stored type, const F& f) {
  if (type == Stored::kBFloat16) {
    f(BFloat16{});
  } else if (type == Stored::kFloat16) {
    f(Float16{});
  } else {
    f(float{});
  }
}
/// Calls f(A{}, B{}) for two arrays of one type, or of which one is float32.
template <typename F>
void with_types(Stored a, Stored b, const F& f) {
  if (a == b) {
    with_type(a, [&]<typename T>(T) { f(T{}, T{}); });
  } else if (a == Stored::kFloat32) {
    with_type(b, [&]<typename T>(T) { f(float{}, T{}); });
  } else {
    ensure(b == Stored::kFloat32, "of two types one is float32");
    with_type(a, [&]<typename T>(T) { f(T{}, float{}); });
  }
}
template <int N>
using Width = std::integral_constant<int, N>;

/// Calls f(T{}, Width<N>()) with how many of the array's elements side by side are one pack: as
/// many as memory moves best, or 1 where they do not divide `count`.
template <typename F>
void with_packs(Stored type, uint32_t count, const F& f) {
  with_type(type, [&]<typename T>(T) {
    if (packs_into(count, kPackWidth<T>)) {
      f(T{}, Width<kPackWidth<T>>());
    } else {
      f(T{}, Width<1>());
    }
  });
}
template <typename T>
const T* in(const ConstArray& array) {
  return static_cast<const T*>(array.data);
}
template <typename T>
T* out(const Array& array) {
  return static_cast<T*>(array.data);
}

}  // namespace outrigger::nn::cuda
