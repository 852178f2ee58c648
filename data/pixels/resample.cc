#include "data/pixels/resample.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/pixels/resample.cc"
#include <hwy/foreach_target.h>
// Highway wants its own headers behind foreach_target.h.
#include <hwy/highway.h>

#include <cstring>

#include "data/pixels/filter.h"

HWY_BEFORE_NAMESPACE();
namespace outrigger::data::pixels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Pixels are multiplied by 2^7 so that rounded products keep 7 bits behind the point; 255 * 2^7
/// fits in int16.
constexpr int kPixelBits = 7;

/// Reads whole vectors: up to one behind the `bytes` of each row, which Image's slack allows.
void weighted_rows(const uint8_t* rows, size_t stride, const int16_t* weights, int taps,
                   size_t bytes, int16_t* sum) {
  const hn::ScalableTag<int16_t> wide;
  const hn::Rebind<uint8_t, decltype(wide)> narrow;
  for (size_t i = 0; i < bytes; i += hn::Lanes(wide)) {
    const uint8_t* column = rows + i;
    auto total = hn::Zero(wide);
    for (int t = 0; t < taps; ++t, column += stride) {
      const auto pixels = hn::ShiftLeft<kPixelBits>(hn::PromoteTo(wide, hn::LoadU(narrow, column)));
      total = hn::SaturatedAdd(total, hn::MulFixedPoint15(pixels, hn::Set(wide, weights[t])));
    }
    hn::StoreU(total, wide, sum + i);
  }
}

uint8_t to_pixel(int sum) {
  const int rounded = (sum + (1 << (kPixelBits - 1))) >> kPixelBits;
  return static_cast<uint8_t>(rounded > 255 ? 255 : rounded);
}

void weighted_pixels_1(const int16_t* row, const AxisFilter& filter, const int16_t*,
                       uint8_t* output) {
  for (int x = 0; x < filter.outputs(); ++x) {
    const int16_t* from = row + filter.start(x);
    const int16_t* weights = filter.weights(x);
    int sum = 0;
    for (int t = 0; t < filter.count(x); ++t) sum += (from[t] * weights[t] + (1 << 14)) >> 15;
    output[x] = to_pixel(sum);
  }
}

/// One output pixel of four channels: two input pixels fill 128 bits. kTaps: how many taps, 0 for
/// any multiple of two.
template <size_t kTaps>
void weighted_pixel_4(const int16_t* from, const int16_t* weights, size_t taps, uint8_t* output) {
  if (kTaps != 0) taps = kTaps;
#if HWY_TARGET == HWY_SCALAR
  for (size_t c = 0; c < 4; ++c) {
    int sum = 0;
    for (size_t t = 0; t < taps; ++t)
      sum += (from[4 * t + c] * weights[4 * t + c] + (1 << 14)) >> 15;
    output[c] = to_pixel(sum);
  }
#else
  const hn::CappedTag<int16_t, 8> d;
  auto total = hn::MulFixedPoint15(hn::LoadU(d, from), hn::LoadU(d, weights));
  for (size_t t = 8; t < 4 * taps; t += 8) {
    total = hn::SaturatedAdd(
        total, hn::MulFixedPoint15(hn::LoadU(d, from + t), hn::LoadU(d, weights + t)));
  }
  const hn::Half<decltype(d)> half;
  auto sum = hn::SaturatedAdd(hn::LowerHalf(half, total), hn::UpperHalf(half, total));
  sum = hn::ShiftRight<kPixelBits>(hn::SaturatedAdd(sum, hn::Set(half, 1 << (kPixelBits - 1))));
  const hn::Rebind<uint8_t, decltype(half)> bytes;
  hn::StoreU(hn::DemoteTo(bytes, sum), bytes, output);
#endif
}

template <size_t kTaps>
void weighted_row_4(const int16_t* row, const AxisFilter& filter, const int16_t* weights,
                    uint8_t* output) {
  const size_t taps = static_cast<size_t>(filter.taps());
  for (int x = 0; x < filter.outputs(); ++x, weights += 4 * taps, output += 4) {
    weighted_pixel_4<kTaps>(row + 4 * static_cast<ptrdiff_t>(filter.start(x)), weights, taps,
                            output);
  }
}

/// `weights`: {output, tap, channel}, the taps a multiple of two.
void weighted_pixels_4(const int16_t* row, const AxisFilter& filter, const int16_t* weights,
                       uint8_t* output) {
  if (filter.taps() == 2) {
    weighted_row_4<2>(row, filter, weights, output);
  } else if (filter.taps() == 4) {
    weighted_row_4<4>(row, filter, weights, output);
  } else {
    weighted_row_4<0>(row, filter, weights, output);
  }
}

/// Drops every fourth byte.
void pack_rows(const uint8_t* rgbx, size_t pixels, uint8_t* rgb) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  for (; i + hn::Lanes(d) <= pixels; i += hn::Lanes(d)) {
    hn::VFromD<decltype(d)> r, g, b, x;
    hn::LoadInterleaved4(d, rgbx + 4 * i, r, g, b, x);
    hn::StoreInterleaved3(r, g, b, d, rgb + 3 * i);
  }
#endif
  for (; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = rgbx[4 * i + c];
  }
}

}  // namespace outrigger::data::pixels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrigger::data::pixels {
namespace {

HWY_EXPORT(weighted_rows);
HWY_EXPORT(weighted_pixels_1);
HWY_EXPORT(weighted_pixels_4);
HWY_EXPORT(pack_rows);

/// Vectors may be stored up to this many numbers behind a row's end.
constexpr size_t kRowSlack = 64;

}  // namespace

void Resampler::run(const Input& input, const AxisMap& across, const AxisMap& down, Image& output) {
  const Image& source = input.source;
  const int channels = source.channels();
  across_.build(across, channels == 4 ? 2 : 1);
  down_.build(down, 1);
  output.reshape(down.outputs, across.outputs, channels);
  if (channels == 4) {
    const size_t count =
        static_cast<size_t>(across_.outputs()) * static_cast<size_t>(across_.taps());
    weights_of_channels_.resize(4 * count);
    const int16_t* weights = across_.weights(0);
    for (size_t i = 0; i < 4 * count; ++i) weights_of_channels_[i] = weights[i / 4];
  }
  // Behind the row lie numbers that only meet zero weights, whatever they are.
  row_.resize(source.stride() + kRowSlack + 4 * static_cast<size_t>(across_.taps()));
  const int16_t* row = row_.data() - static_cast<ptrdiff_t>(input.left) * channels;
  for (int y = 0; y < down.outputs; ++y) {
    HWY_DYNAMIC_DISPATCH(weighted_rows)
    (source.row(down_.start(y) - input.top), source.stride(), down_.weights(y), down_.count(y),
     source.stride(), row_.data());
    if (channels == 4) {
      HWY_DYNAMIC_DISPATCH(weighted_pixels_4)
      (row, across_, weights_of_channels_.data(), output.row(y));
    } else {
      HWY_DYNAMIC_DISPATCH(weighted_pixels_1)(row, across_, nullptr, output.row(y));
    }
  }
}

void pack(const Image& image, uint8_t* packed) {
  if (image.channels() == 1) {
    std::memcpy(packed, image.pixels().data(), image.size());
  } else {
    HWY_DYNAMIC_DISPATCH(pack_rows)(image.pixels().data(), image.size() / 4, packed);
  }
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets())
    names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_instruction_set(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (hwy::TargetName(target) == name) hwy::SetSupportedTargetsForTest(target);
  }
  hwy::GetChosenTarget().DeInit();  // chosen anew at the next call
}

}  // namespace outrigger::data::pixels
#endif
