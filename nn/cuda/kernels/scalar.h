#pragma once

#include <cstdint>
#include <cstring>

/// What every kernel is written with: element types as plain bits, and functions that a GPU and, in
/// tests, the host compile alike.
#ifdef __CUDACC__
#define OUTRIGGER_BOTH __host__ __device__
#else
#define OUTRIGGER_BOTH
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

/// The upper half of a float32, rounded to nearest even; NaN stays NaN. As outrigger::to_bfloat16.
struct BFloat16 {
  uint16_t bits;
};

OUTRIGGER_BOTH inline float to_float(float value) { return value; }
OUTRIGGER_BOTH inline float to_float(BFloat16 value) {
  return float_of(uint32_t{value.bits} << 16);
}

/// Stores a float32 in the array's own type.
OUTRIGGER_BOTH inline void store(float* to, float value) { *to = value; }
OUTRIGGER_BOTH inline void store(BFloat16* to, float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    to->bits = static_cast<uint16_t>((bits >> 16) | 0x40u);
    return;
  }
  to->bits = static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// The same, added to what is there where `add` says so.
template <typename T>
OUTRIGGER_BOTH inline void store(T* to, float value, bool add) {
  store(to, add ? to_float(*to) + value : value);
}

/// Three sums that one kernel gathers at once; `double` where the last of them are added.
template <typename T>
struct Sums {
  T a = 0, b = 0, c = 0;
};

}  // namespace outrigger::nn::cuda
