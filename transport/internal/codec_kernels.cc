#include "transport/internal/codec_kernels.h"

#include <algorithm>

#include "common/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transport/internal/codec_kernels.cc"
#include <hwy/foreach_target.h>
// Highway wants its own headers behind foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace outrigger::transport::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each loop is written once for a vector type D and run twice: for whole vectors and, with one
// lane, for the rest.
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

template <class D>
size_t magnitudes_part(D d, const float* row, size_t c, size_t channels, int32_t* magnitude,
                       bool& negative) {
  const hn::RebindToSigned<D> di;
  for (; c + hn::Lanes(d) <= channels; c += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, row + c);
    const auto bits = hn::BitCast(di, hn::Abs(value));
    hn::StoreU(hn::Max(hn::LoadU(di, magnitude + c), bits), di, magnitude + c);
    negative |= !hn::AllFalse(d, hn::Lt(value, hn::Zero(d)));
  }
  return c;
}

bool find_magnitudes(const float* rows, size_t row_count, size_t channels, int32_t* magnitude) {
  bool negative = false;
  for (size_t r = 0; r < row_count; ++r) {
    const float* row = rows + r * channels;
    const size_t rest = magnitudes_part(Full(), row, 0, channels, magnitude, negative);
    magnitudes_part(One(), row, rest, channels, magnitude, negative);
  }
  return negative;
}

#if HWY_TARGET == HWY_SCALAR  // has no 64-bit products

void philox_vectors(const PhiloxRange& range, uint32_t* words) {
  auto counter = range.first;
  for (size_t i = 0; i < range.blocks; ++i, ++counter[0]) {
    const auto block = philox(range.key, counter);
    std::copy(block.begin(), block.end(), words + 4 * i);
  }
}

#else

using Words = hn::ScalableTag<uint32_t>;
using Wide = hn::Repartition<uint64_t, Words>;
using Vector = hn::Vec<Wide>;

/// A round of one block a lane, its words in the lower halves; the upper ones hold anything.
HWY_INLINE void philox_round(Vector k0, Vector k1, Vector& c0, Vector& c1, Vector& c2, Vector& c3) {
  const Words d;
  const auto p0 = hn::MulEven(hn::BitCast(d, c0), hn::Set(d, 0xD2511F53u));
  const auto p1 = hn::MulEven(hn::BitCast(d, c2), hn::Set(d, 0xCD9E8D57u));
  c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, k0);
  c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, k1);
  c1 = p1;
  c3 = p0;
}

constexpr size_t kRounds = 10;

/// The constants are Philox's (common/random.cc). Rounds are written out and their keys made
/// before: what a processor sees at once is then several blocks' rounds, each of which waits for
/// the former.
void philox_vectors(const PhiloxRange& range, uint32_t* words) {
  const Words d;
  const Wide wide;
  const size_t lanes = hn::Lanes(d), step = hn::Lanes(wide);
  HWY_ALIGN uint64_t keys[2 * kRounds * hn::MaxLanes(wide)];
  auto [k0, k1] = range.key;
  for (size_t round = 0; round < kRounds; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    hn::Store(hn::Set(wide, uint64_t{k0}), wide, keys + 2 * round * step);
    hn::Store(hn::Set(wide, uint64_t{k1}), wide, keys + (2 * round + 1) * step);
  }
  const auto joined = [&](Vector even, Vector odd) {
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  };
  for (size_t i = 0; i < range.blocks; i += lanes) {
    auto a0 = hn::BitCast(wide, hn::Iota(d, range.first[0] + static_cast<uint32_t>(i)));
    auto b0 = hn::ShiftRight<32>(a0);
    auto a1 = hn::Set(wide, uint64_t{range.first[1]}), b1 = a1;
    auto a2 = hn::Set(wide, uint64_t{range.first[2]}), b2 = a2;
    auto a3 = hn::Set(wide, uint64_t{range.first[3]}), b3 = a3;
    const auto both = [&](size_t round) HWY_ATTR {
      const auto key0 = hn::Load(wide, keys + 2 * round * step);
      const auto key1 = hn::Load(wide, keys + (2 * round + 1) * step);
      philox_round(key0, key1, a0, a1, a2, a3);
      philox_round(key0, key1, b0, b1, b2, b3);
    };
    both(0), both(1), both(2), both(3), both(4), both(5), both(6), both(7), both(8), both(9);
    hn::StoreInterleaved4(joined(a0, b0), joined(a1, b1), joined(a2, b2), joined(a3, b3), d,
                          words + 4 * i);
  }
}

#endif

template <class D>
size_t quantise_part(D d, const float* row, uint8_t* to, const uint16_t* random, size_t c,
                     const Quantise& how) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint8_t, D> d8;
  const hn::Rebind<int8_t, D> d8s;
  for (; c + hn::Lanes(d) <= how.channels; c += hn::Lanes(d)) {
    const auto scaled = hn::Mul(hn::LoadU(d, row + c), hn::LoadU(d, how.inverse_scale + c));
    auto whole = hn::Zero(di);
    if (random == nullptr) {
      whole = hn::NearestInt(scaled);
    } else {
      const auto number = hn::PromoteTo(di, hn::LoadU(d16, random + c));
      const auto fixed = hn::NearestInt(hn::Mul(scaled, hn::Set(d, 65536.0F)));
      whole = hn::ShiftRight<16>(hn::Add(fixed, number));
    }
    // Both saturate; of the signed ones there is no -128.
    if (how.is_signed) {
      const auto kept = hn::Max(whole, hn::Set(di, -127));
      hn::StoreU(hn::BitCast(d8, hn::DemoteTo(d8s, kept)), d8, to + c);
    } else {
      hn::StoreU(hn::DemoteTo(d8, whole), d8, to + c);
    }
  }
  return c;
}

void quantise_rows(const float* rows, uint8_t* to, const Quantise& how) {
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
HWY_EXPORT(philox_vectors);
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

void philox_blocks(const PhiloxRange& range, uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(philox_vectors)(range, words);
}

void quantise(const float* rows, uint8_t* to, const Quantise& how) {
  HWY_DYNAMIC_DISPATCH(quantise_rows)(rows, to, how);
}

void dequantise(const uint8_t* from, float* rows, const Dequantise& how) {
  HWY_DYNAMIC_DISPATCH(dequantise_rows)(from, rows, how);
}

}  // namespace outrigger::transport::kernels
#endif
