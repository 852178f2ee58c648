#include "transport/internal/codec_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transport/internal/codec_kernels.cc"
#include <hwy/foreach_target.h>
// Highway wants its own headers behind foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace outrigger::transport::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each loop is written once for a vector type D and run twice: for whole vectors and, with one
// lane, for the rest.
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// Floats of a page: processors fetch ahead of such loops by themselves, but not past its end.
constexpr size_t kAhead = 1024;

template <class D>
size_t to_bfloat16_part(D d, const float* from, uint16_t* to, size_t i, size_t count) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  const auto infinity = hn::Set(du, 0x7F800000u);
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto bits = hn::LoadU(du, reinterpret_cast<const uint32_t*>(from) + i);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto half = hn::Add(hn::Set(du, 0x7FFFu), hn::And(upper, hn::Set(du, 1u)));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, half));
    const auto is_nan = hn::Gt(hn::And(bits, hn::Set(du, 0x7FFFFFFFu)), infinity);
    const auto result = hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(du, 0x40u)), rounded);
    hn::StoreU(hn::TruncateTo(d16, result), d16, to + i);
  }
  return i;
}

void narrow_floats(const float* from, uint16_t* to, size_t count) {
  to_bfloat16_part(One(), from, to, to_bfloat16_part(Full(), from, to, 0, count), count);
}

template <class D>
size_t from_bfloat16_part(D d, const uint16_t* from, float* to, size_t i, size_t count) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, from + i)));
    hn::StoreU(hn::BitCast(d, bits), d, to + i);
  }
  return i;
}

void widen_bfloat16(const uint16_t* from, float* to, size_t count) {
  from_bfloat16_part(One(), from, to, from_bfloat16_part(Full(), from, to, 0, count), count);
}

/// Four rows at a time (of those that are left, the last one several times), so that a magnitude is
/// loaded and stored seldom.
template <class D>
size_t magnitudes_part(D d, const std::array<const float*, 4>& rows, size_t c, size_t channels,
                       int32_t* magnitude, bool& negative) {
  const hn::RebindToSigned<D> di;
  auto least = hn::Zero(d);
  for (; c + hn::Lanes(d) <= channels; c += hn::Lanes(d)) {
    auto largest = hn::LoadU(di, magnitude + c);
    for (const float* row : rows) {
      const auto value = hn::LoadU(d, row + c);
      hwy::Prefetch(row + c + kAhead);
      largest = hn::Max(largest, hn::BitCast(di, hn::Abs(value)));
      least = hn::IfThenElse(hn::Lt(value, least), value, least);
    }
    hn::StoreU(largest, di, magnitude + c);
  }
  negative |= !hn::AllFalse(d, hn::Lt(least, hn::Zero(d)));
  return c;
}

bool find_magnitudes(const float* rows, size_t row_count, size_t channels, int32_t* magnitude) {
  bool negative = false;
  for (size_t r = 0; r < row_count; r += 4) {
    std::array<const float*, 4> four{};
    for (size_t i = 0; i < 4; ++i) four[i] = rows + std::min(r + i, row_count - 1) * channels;
    const size_t rest = magnitudes_part(Full(), four, 0, channels, magnitude, negative);
    magnitudes_part(One(), four, rest, channels, magnitude, negative);
  }
  return negative;
}

/// noise_at of codec_kernels.h; `element` are the elements' indices plus key[0].
template <class V>
HWY_INLINE V noise(V element, const Noise& of) {
  const hn::DFromV<V> d;
  auto x = hn::Mul(hn::Xor(element, hn::ShiftRight<16>(element)), hn::Set(d, kNoiseFactors[0]));
  x = hn::Xor(x, hn::Set(d, of.key[1]));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(d, kNoiseFactors[1]));
  return hn::ShiftRight<16>(x);
}

/// Bytes of whole numbers; both ways saturate, and of the signed ones there is no -128.
template <bool is_signed, class D>
HWY_INLINE void store_bytes(D, hn::Vec<hn::RebindToSigned<D>> whole, uint8_t* to) {
  const hn::Rebind<uint8_t, D> d8;
  if constexpr (is_signed) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<int8_t, D> d8s;
    hn::StoreU(hn::BitCast(d8, hn::DemoteTo(d8s, hn::Max(whole, hn::Set(di, -127)))), d8, to);
  } else {
    hn::StoreU(hn::DemoteTo(d8, whole), d8, to);
  }
}

/// What is known when compiling is as the loop is short; `how` is a copy so that the compiler sees
/// that what is stored does not change it.
template <bool is_signed, bool is_stochastic, class D>
HWY_INLINE size_t quantise_part(D d, const float* row, uint8_t* to, size_t c, const Quantise how) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  auto element = hn::Iota(du, static_cast<uint32_t>(how.first_element + c) + how.noise.key[0]);
  for (; c + hn::Lanes(d) <= how.channels; c += hn::Lanes(d)) {
    hwy::Prefetch(row + c + kAhead);
    const auto scaled = hn::Mul(hn::LoadU(d, row + c), hn::LoadU(d, how.inverse_scale + c));
    auto whole = hn::NearestInt(scaled);
    if constexpr (is_stochastic) {
      whole = hn::ShiftRight<16>(hn::Add(whole, hn::BitCast(di, noise(element, how.noise))));
      element = hn::Add(element, hn::Set(du, static_cast<uint32_t>(hn::Lanes(d))));
    }
    store_bytes<is_signed>(d, whole, to + c);
  }
  return c;
}

template <bool is_signed, bool is_stochastic>
void quantise_all(const float* rows, uint8_t* to, Quantise how) {
  for (size_t r = 0; r < how.row_count; ++r) {
    const size_t rest = quantise_part<is_signed, is_stochastic>(Full(), rows, to, 0, how);
    quantise_part<is_signed, is_stochastic>(One(), rows, to, rest, how);
    rows += how.channels;
    to += how.channels;
    how.first_element += how.channels;
  }
}

void quantise_rows(const float* rows, uint8_t* to, const Quantise& how) {
  if (!how.is_stochastic) {
    (how.is_signed ? quantise_all<true, false> : quantise_all<false, false>)(rows, to, how);
  } else {
    (how.is_signed ? quantise_all<true, true> : quantise_all<false, true>)(rows, to, how);
  }
}

template <class D>
size_t dequantise_part(D d, const uint8_t* from, float* row, size_t c, const Dequantise& how) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const hn::Rebind<int8_t, D> d8s;
  for (; c + hn::Lanes(d) <= how.channels; c += hn::Lanes(d)) {
    const auto byte = hn::LoadU(d8, from + c);
    const auto whole =
        how.is_signed ? hn::PromoteTo(di, hn::BitCast(d8s, byte)) : hn::PromoteTo(di, byte);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, whole), hn::LoadU(d, how.scale + c)), d, row + c);
  }
  return c;
}

void dequantise_rows(const uint8_t* from, float* rows, const Dequantise& how) {
  for (size_t r = 0; r < how.row_count; ++r) {
    const size_t at = r * how.channels;
    const size_t rest = dequantise_part(Full(), from + at, rows + at, 0, how);
    dequantise_part(One(), from + at, rows + at, rest, how);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace outrigger::transport::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrigger::transport::kernels {

HWY_EXPORT(narrow_floats);
HWY_EXPORT(widen_bfloat16);
HWY_EXPORT(find_magnitudes);
HWY_EXPORT(quantise_rows);
HWY_EXPORT(dequantise_rows);

void floats_to_bfloat16(const float* from, uint16_t* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_floats)(from, to, count);
}

void bfloat16_to_floats(const uint16_t* from, float* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_bfloat16)(from, to, count);
}

bool channel_magnitudes(const float* rows, size_t row_count, size_t channels, int32_t* magnitude) {
  return HWY_DYNAMIC_DISPATCH(find_magnitudes)(rows, row_count, channels, magnitude);
}

uint16_t noise_at(const Noise& noise, uint32_t element) {
  uint32_t x = element + noise.key[0];
  x = (x ^ (x >> 16)) * kNoiseFactors[0];
  x ^= noise.key[1];
  x = (x ^ (x >> 13)) * kNoiseFactors[1];
  return static_cast<uint16_t>(x >> 16);
}

void quantise(const float* rows, uint8_t* to, const Quantise& how) {
  HWY_DYNAMIC_DISPATCH(quantise_rows)(rows, to, how);
}

void dequantise(const uint8_t* from, float* rows, const Dequantise& how) {
  HWY_DYNAMIC_DISPATCH(dequantise_rows)(from, rows, how);
}

}  // namespace outrigger::transport::kernels
#endif
