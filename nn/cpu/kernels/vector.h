#pragma once

#include <cstdint>

/// Sixteen numbers at a time, as GCC's and clang's vector types: the compiler maps them to whatever
/// the translation unit is compiled for. Only for the kernels' own sources; everything has internal
/// linkage, so that no function compiled for a newer instruction set can be linked into code for an
/// older one.
namespace {

using Vector = float __attribute__((vector_size(64)));
using Bits = uint32_t __attribute__((vector_size(64)));
using HalfBits = uint16_t __attribute__((vector_size(32)));
using Mask = int32_t __attribute__((vector_size(64)));
using UnalignedVector = float __attribute__((vector_size(64), aligned(4), may_alias));
using UnalignedHalfBits = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));

constexpr int64_t kLanes = 16;

inline Vector load(const float* from) { return *reinterpret_cast<const UnalignedVector*>(from); }
inline void store(float* to, Vector value) { *reinterpret_cast<UnalignedVector*>(to) = value; }

// bfloat16 is the upper half of a float32.
inline Vector load(const uint16_t* from) {
  const HalfBits half = *reinterpret_cast<const UnalignedHalfBits*>(from);
  return reinterpret_cast<Vector>(__builtin_convertvector(half, Bits) << 16);
}
// To nearest even; NaN stays NaN.
inline void store(uint16_t* to, Vector value) {
  const Bits bits = reinterpret_cast<Bits>(value);
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Mask is_nan = value != value;
  const Bits kept = reinterpret_cast<Bits>(is_nan);
  *reinterpret_cast<UnalignedHalfBits*>(to) =
      __builtin_convertvector((rounded & ~kept) | (((bits >> 16) | 0x40u) & kept), HalfBits);
}

inline Vector select(Mask mask, Vector yes, Vector no) {
  const Bits bits = reinterpret_cast<Bits>(mask);
  return reinterpret_cast<Vector>((reinterpret_cast<Bits>(yes) & bits) |
                                  (reinterpret_cast<Bits>(no) & ~bits));
}
inline Vector zero_unless(Mask mask, Vector value) {
  return reinterpret_cast<Vector>(reinterpret_cast<Bits>(value) & reinterpret_cast<Bits>(mask));
}
inline Vector broadcast(float value) { return Vector{} + value; }

// The same for one number.
inline float load_one(const float* from) { return *from; }
inline float load_one(const uint16_t* from) {
  const uint32_t bits = uint32_t{*from} << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline void store_one(float* to, float value) { *to = value; }
inline void store_one(uint16_t* to, float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  *to = static_cast<uint16_t>(value != value ? (bits >> 16) | 0x40u
                                             : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace
