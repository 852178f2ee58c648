#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

/// What every kernel is written with: element types as plain bits, and functions that a GPU and, in
/// tests, the host compile alike.
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define OUTRIGGER_BOTH __host__ __device__
#else
#define OUTRIGGER_BOTH
#endif

/// Before a loop whose next turns a GPU is to begin beside this one.
#ifdef __CUDA_ARCH__
#define OUTRIGGER_UNROLL _Pragma("unroll 2")
#else
#define OUTRIGGER_UNROLL
#endif

namespace outrigger::nn::cuda {

OUTRIGGER_BOTH inline uint32_t bits_of(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

OUTRIGGER_BOTH inline float float_of(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

/// How an array's elements lie in memory.
enum class Stored : uint8_t { kFloat32, kBFloat16, kFloat16 };

inline size_t element_size(Stored type) { return type == Stored::kFloat32 ? 4 : 2; }

/// The upper half of a float32, rounded to nearest even; NaN stays NaN. As outrigger::to_bfloat16,
/// but that a GPU may give another NaN.
struct BFloat16 {
  uint16_t bits;
};

/// IEEE 754 binary16, rounded to nearest even; what is too large becomes infinite, NaN stays NaN.
struct Float16 {
  uint16_t bits;
};

OUTRIGGER_BOTH inline float to_float(float value) { return value; }
OUTRIGGER_BOTH inline float to_float(Float16 value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16, rest = value.bits & 0x7FFFu;
  if (rest >= 0x7C00u) return float_of(sign | 0x7F800000u | ((rest & 0x3FFu) << 13));
  // 2^-24 is the least of float16: subnormal ones are as many of it.
  if (rest < 0x400u) {
    const float size = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -size : size;
  }
  return float_of(sign | ((rest + (112u << 10)) << 13));  // its exponents count from 15, not 127
#endif
}
OUTRIGGER_BOTH inline float to_float(BFloat16 value) {
  return float_of(uint32_t{value.bits} << 16);
}

/// Stores a float32 in the array's own type.
OUTRIGGER_BOTH inline void store(float* to, float value) { *to = value; }
OUTRIGGER_BOTH inline void store(BFloat16* to, float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    to->bits = static_cast<uint16_t>((bits >> 16) | 0x40u);
    return;
  }
  to->bits = static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
#endif
}

OUTRIGGER_BOTH inline void store(Float16* to, float value) {
#ifdef __CUDA_ARCH__
  to->bits = __half_as_ushort(__float2half_rn(value));
#else
  const uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, size = bits & 0x7FFFFFFFu;
  uint32_t half = 0;
  if (size > 0x7F800000u) {
    half = 0x7E00u;
  } else if (size >= 0x477FF000u) {  // half a step above the largest, 65504, and more
    half = 0x7C00u;
  } else if (size < 0x38800000u) {  // below 2^-14: subnormal. Beside 0.5, steps are of 2^-24
    half = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
  } else {
    half = ((size + 0xFFFu + ((size >> 13) & 1u)) >> 13) - (112u << 10);
  }
  to->bits = static_cast<uint16_t>(sign | half);
#endif
}

/// The same, added to what is there where `add` says so.
template <typename T>
OUTRIGGER_BOTH inline void store(T* to, float value, bool add) {
  store(to, add ? to_float(*to) + value : value);
}

}  // namespace outrigger::nn::cuda
