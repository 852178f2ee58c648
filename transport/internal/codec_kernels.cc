#include "transport/internal/codec_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transport/internal/codec_kernels.cc"
#include <hwy/foreach_target.h>
// Highway wants its own headers behind foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace outrigger::transport::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each loop is written once for a vector type D and run twice: for whole vectors and, with one lane, for the rest.
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

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

void FloatsToBfloat16(const float* from, uint16_t* to, size_t count) {
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

void Bfloat16ToFloats(const uint16_t* from, float* to, size_t count) {
  from_bfloat16_part(One(), from, to, from_bfloat16_part(Full(), from, to, 0, count), count);
}

template <class D>
size_t magnitudes_part(D d, const float* row, size_t c, size_t channels, int32_t* magnitude, bool& negative) {
  const hn::RebindToSigned<D> di;
  for (; c + hn::Lanes(d) <= channels; c += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, row + c);
    const auto bits = hn::BitCast(di, hn::Abs(value));
    hn::StoreU(hn::Max(hn::LoadU(di, magnitude + c), bits), di, magnitude + c);
    negative |= !hn::AllFalse(d, hn::Lt(value, hn::Zero(d)));
  }
  return c;
}

bool ChannelMagnitudes(const float* rows, size_t row_count, size_t channels, int32_t* magnitude) {
  bool negative = false;
  for (size_t r = 0; r < row_count; ++r) {
    const float* row = rows + r * channels;
    const size_t rest = magnitudes_part(Full(), row, 0, channels, magnitude, negative);
    magnitudes_part(One(), row, rest, channels, magnitude, negative);
  }
  return negative;
}

template <class D>
size_t quantise_part(D d, const float* row, uint8_t* to, const uint16_t* random, size_t c, const Quantise& how) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint8_t, D> d8;
  const auto low = hn::Set(di, how.is_signed ? -127 : 0);
  const auto high = hn::Set(di, how.is_signed ? 127 : 255);
  for (; c + hn::Lanes(d) <= how.channels; c += hn::Lanes(d)) {
    const auto scaled = hn::Mul(hn::LoadU(d, row + c), hn::LoadU(d, how.inverse_scale + c));
    auto whole = hn::Zero(di);
    if (random == nullptr) {
      whole = hn::NearestInt(scaled);
    } else {
      const auto number = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d16, random + c)));
      whole = hn::ConvertTo(di, hn::Floor(hn::Add(scaled, hn::Mul(number, hn::Set(d, 0x1.0p-16f)))));
    }
    const auto kept = hn::Min(hn::Max(whole, low), high);
    const auto byte = hn::And(hn::BitCast(hn::RebindToUnsigned<D>(), kept), hn::Set(hn::RebindToUnsigned<D>(), 255u));
    hn::StoreU(hn::TruncateTo(d8, byte), d8, to + c);
  }
  return c;
}

void QuantiseRows(const float* rows, uint8_t* to, const Quantise& how) {
  for (size_t r = 0; r < how.row_count; ++r) {
    const size_t at = r * how.channels;
    const uint16_t* random = how.random == nullptr ? nullptr : how.random + at;
    const size_t rest = quantise_part(Full(), rows + at, to + at, random, 0, how);
    quantise_part(One(), rows + at, to + at, random, rest, how);
  }
}

template <class D>
size_t dequantise_part(D d, const uint8_t* from, float* row, size_t c, const Dequantise& how) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const hn::Rebind<int8_t, D> d8s;
  for (; c + hn::Lanes(d) <= how.channels; c += hn::Lanes(d)) {
    const auto byte = hn::LoadU(d8, from + c);
    const auto whole = how.is_signed ? hn::PromoteTo(di, hn::BitCast(d8s, byte)) : hn::PromoteTo(di, byte);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, whole), hn::LoadU(d, how.scale + c)), d, row + c);
  }
  return c;
}

void DequantiseRows(const uint8_t* from, float* rows, const Dequantise& how) {
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

HWY_EXPORT(FloatsToBfloat16);
HWY_EXPORT(Bfloat16ToFloats);
HWY_EXPORT(ChannelMagnitudes);
HWY_EXPORT(QuantiseRows);
HWY_EXPORT(DequantiseRows);

void floats_to_bfloat16(const float* from, uint16_t* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(FloatsToBfloat16)(from, to, count);
}

void bfloat16_to_floats(const uint16_t* from, float* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(Bfloat16ToFloats)(from, to, count);
}

bool channel_magnitudes(const float* rows, size_t row_count, size_t channels, int32_t* magnitude) {
  return HWY_DYNAMIC_DISPATCH(ChannelMagnitudes)(rows, row_count, channels, magnitude);
}

void quantise(const float* rows, uint8_t* to, const Quantise& how) {
  HWY_DYNAMIC_DISPATCH(QuantiseRows)(rows, to, how);
}

void dequantise(const uint8_t* from, float* rows, const Dequantise& how) {
  HWY_DYNAMIC_DISPATCH(DequantiseRows)(from, rows, how);
}

}  // namespace outrigger::transport::kernels
#endif
