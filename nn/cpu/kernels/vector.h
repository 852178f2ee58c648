#pragma once

#include <immintrin.h>

#include <cstdint>

/// As many numbers at a time as a register has, as GCC's and clang's vector types: the compiler
/// maps them to whatever the translation unit is compiled for. (Wider than a register GCC compares
/// them one by one.) Only for the kernels' own sources; everything has internal linkage, so that no
/// function compiled for a newer instruction set can be linked into code for an older one.
namespace {

#if defined(__AVX512F__)
constexpr int64_t kLanes = 16;
#elif defined(__AVX2__)
constexpr int64_t kLanes = 8;
#else
constexpr int64_t kLanes = 4;
#endif

/// Sums that registers hold beside what is added to them.
#ifdef __AVX512F__
constexpr int kMostSums = 24;  // of 32
#else
constexpr int kMostSums = 12;  // of 16
#endif

/// Instrumented, a loop that is written out takes a compiler minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif
#else
constexpr bool kInstrumented = false;
#endif

using Vector = float __attribute__((vector_size(4 * kLanes)));
using Bits = uint32_t __attribute__((vector_size(4 * kLanes)));
using Mask = int32_t __attribute__((vector_size(4 * kLanes)));

/// A vector where it happens to lie. (An `aligned` on the vector type itself clang passes over.)
template <typename V>
struct __attribute__((packed, may_alias)) Unaligned {
  V value;
};

inline Vector load(const float* from) {
  return reinterpret_cast<const Unaligned<Vector>*>(from)->value;
}
inline void store(float* to, Vector value) {
  reinterpret_cast<Unaligned<Vector>*>(to)->value = value;
}

// Compilers take __builtin_convertvector apart; there are instructions for each of these.
inline Bits widen(const uint16_t* from) {
  const auto* halves = reinterpret_cast<const __m128i*>(from);
#if defined(__AVX512F__)
  return reinterpret_cast<Bits>(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves))));
#elif defined(__AVX2__)
  return reinterpret_cast<Bits>(_mm256_cvtepu16_epi32(_mm_loadu_si128(halves)));
#else
  return reinterpret_cast<Bits>(_mm_cvtepu16_epi32(_mm_loadl_epi64(halves)));
#endif
}
inline Bits widen(const uint8_t* from) {
  const auto* bytes = reinterpret_cast<const __m128i*>(from);
#if defined(__AVX512F__)
  return reinterpret_cast<Bits>(_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes)));
#elif defined(__AVX2__)
  return reinterpret_cast<Bits>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes)));
#else
  return reinterpret_cast<Bits>(_mm_cvtepu8_epi32(_mm_loadu_si32(bytes)));
#endif
}
#ifndef __AVX512F__
// The lower half of each number, in the lower half of the result.
inline __m128i halves_of(Bits bits) {
#ifdef __AVX2__
  const auto whole = reinterpret_cast<__m256i>(bits);
  return _mm256_castsi256_si128(
      _mm256_permute4x64_epi64(_mm256_packus_epi32(whole, whole), 0b1000));
#else
  const auto whole = reinterpret_cast<__m128i>(bits);
  return _mm_packus_epi32(whole, whole);
#endif
}
#endif
// Numbers that fit.
inline void narrow(uint16_t* to, Bits bits) {
  auto* halves = reinterpret_cast<__m128i*>(to);
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(halves),
                      _mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(bits)));
#elif defined(__AVX2__)
  _mm_storeu_si128(halves, halves_of(bits));
#else
  _mm_storel_epi64(halves, halves_of(bits));
#endif
}
inline void narrow(uint8_t* to, Bits bits) {
  auto* bytes = reinterpret_cast<__m128i*>(to);
#if defined(__AVX512F__)
  _mm_storeu_si128(bytes, _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(bits)));
#elif defined(__AVX2__)
  _mm_storel_epi64(bytes, _mm_packus_epi16(halves_of(bits), halves_of(bits)));
#else
  _mm_storeu_si32(bytes, _mm_packus_epi16(halves_of(bits), halves_of(bits)));
#endif
}

// bfloat16 is the upper half of a float32.
inline Vector load(const uint16_t* from) { return reinterpret_cast<Vector>(widen(from) << 16); }
// To nearest even; NaN stays NaN.
inline void store(uint16_t* to, Vector value) {
#ifdef __AVX512BF16__
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(to),
      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(value))));
#else
  const Bits bits = reinterpret_cast<Bits>(value);
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Mask is_nan = value != value;
  const Bits kept = reinterpret_cast<Bits>(is_nan);
  narrow(to, (rounded & ~kept) | (((bits >> 16) | 0x40u) & kept));
#endif
}
inline Vector to_floats(Bits bits) {
  return __builtin_convertvector(reinterpret_cast<Mask>(bits), Vector);
}

inline Vector select(Mask mask, Vector yes, Vector no) {
  const Bits bits = reinterpret_cast<Bits>(mask);
  return reinterpret_cast<Vector>((reinterpret_cast<Bits>(yes) & bits) |
                                  (reinterpret_cast<Bits>(no) & ~bits));
}
inline Vector zero_unless(Mask mask, Vector value) {
  return reinterpret_cast<Vector>(reinterpret_cast<Bits>(value) & reinterpret_cast<Bits>(mask));
}
// Less 0, which every value is; plus 0 turns -0 into 0, and so would stay in the code.
inline Vector broadcast(float value) { return value - Vector{}; }
// a * b + c, rounded once where the instruction set can.
inline Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}

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

// What says which lanes are the first `values`.
#if defined(__AVX512F__)
inline __mmask16 first_lanes(int64_t values) { return static_cast<__mmask16>((1u << values) - 1); }
#elif defined(__AVX2__)
inline Mask first_lanes(int64_t values) {
  return Mask{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(values);
}
#endif

// Loads the values that exist, and `fill` in the other lanes.
inline Vector load_some(const float* from, int64_t values, Vector fill) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(
      _mm512_mask_loadu_ps(reinterpret_cast<__m512>(fill), first_lanes(values), from));
#elif defined(__AVX2__)
  const Mask there = first_lanes(values);
  return select(
      there, reinterpret_cast<Vector>(_mm256_maskload_ps(from, reinterpret_cast<__m256i>(there))),
      fill);
#else
  float lanes[kLanes];
  store(lanes, fill);
  for (int64_t i = 0; i < values; ++i) lanes[i] = from[i];
  return load(lanes);
#endif
}
inline Vector load_some(const uint16_t* from, int64_t values, Vector fill) {
#ifdef __AVX512F__
  const __m256i halves = _mm256_maskz_loadu_epi16(first_lanes(values), from);
  const Bits bits = reinterpret_cast<Bits>(_mm512_maskz_cvtepu16_epi32(first_lanes(values), halves))
                    << 16;
  return reinterpret_cast<Vector>(_mm512_mask_mov_ps(
      reinterpret_cast<__m512>(fill), first_lanes(values), reinterpret_cast<__m512>(bits)));
#else
  float lanes[kLanes];
  store(lanes, fill);
  for (int64_t i = 0; i < values; ++i) lanes[i] = load_one(from + i);
  return load(lanes);
#endif
}
inline void store_some(float* to, int64_t values, Vector value) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, first_lanes(values), reinterpret_cast<__m512>(value));
#elif defined(__AVX2__)
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(first_lanes(values)),
                      reinterpret_cast<__m256>(value));
#else
  float lanes[kLanes];
  store(lanes, value);
  for (int64_t i = 0; i < values; ++i) to[i] = lanes[i];
#endif
}
inline void store_some(uint16_t* to, int64_t values, Vector value) {
  uint16_t lanes[kLanes];
  store(lanes, value);
#ifdef __AVX512F__
  _mm256_mask_storeu_epi16(to, first_lanes(values),
                           _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes)));
#else
  for (int64_t i = 0; i < values; ++i) to[i] = lanes[i];
#endif
}

}  // namespace
