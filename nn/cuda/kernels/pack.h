#pragma once

#include "nn/cuda/kernels/scalar.h"

/// Values side by side that one thread reads and writes as one.
namespace outrigger::nn::cuda {

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};

/// As many as memory moves best at once.
template <typename T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

/// Widths are powers of two: whether packs of N end where rows of `columns` do.
OUTRIGGER_BOTH inline bool packs_into(uint32_t columns, int width) {
  return columns % static_cast<uint32_t>(width) == 0;
}

#ifdef __CUDA_ARCH__
template <int kBytes>
struct Word;
template <>
struct Word<16> {
  using Type = uint4;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<4> {
  using Type = unsigned int;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<1> {
  using Type = unsigned char;
};
#endif

/// `from` is a multiple of N elements behind where an array begins, and no other thread writes
/// there: a GPU may then read ahead of what this one writes elsewhere.
template <int N, typename T>
OUTRIGGER_BOTH inline Pack<T, N> read_pack(const T* from) {
#ifdef __CUDA_ARCH__
  using Bits = typename Word<static_cast<int>(sizeof(Pack<T, N>))>::Type;
  const Bits bits = __ldg(reinterpret_cast<const Bits*>(from));
  return *reinterpret_cast<const Pack<T, N>*>(&bits);
#else
  return *reinterpret_cast<const Pack<T, N>*>(from);
#endif
}

template <int N, typename T>
OUTRIGGER_BOTH inline void load(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = read_pack<N>(from);
  for (int j = 0; j < N; ++j) to[j] = to_float(pack.values[j]);
}

/// From the i-th element on; zeros where there is no array.
template <int N, typename T>
OUTRIGGER_BOTH inline void load_if_there(const T* array, uint32_t i, float (&to)[N]) {
  const Pack<T, N> pack = array != nullptr ? read_pack<N>(array + i) : Pack<T, N>{};
  for (int j = 0; j < N; ++j) to[j] = to_float(pack.values[j]);
}

/// Added to what is there where `add` says so.
template <int N, typename T>
OUTRIGGER_BOTH inline void save(T* to, const float (&from)[N], bool add = false) {
  Pack<T, N> pack = {};
  if (add) pack = *reinterpret_cast<const Pack<T, N>*>(to);
  for (int j = 0; j < N; ++j)
    store(&pack.values[j], add ? to_float(pack.values[j]) + from[j] : from[j]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// N of float32, wherever they lie.
template <int N>
OUTRIGGER_BOTH inline void load_each(const float* from, float (&to)[N]) {
  for (int j = 0; j < N; ++j) to[j] = from[j];
}

}  // namespace outrigger::nn::cuda
