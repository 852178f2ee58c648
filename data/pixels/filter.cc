#include "data/pixels/filter.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace outrigger::data::pixels {
namespace {

constexpr int64_t kWeightOne = 1 << 15;

int floor_pixel(Fixed position) { return static_cast<int>(position >> kFixedBits); }

/// Half the filter's width: at least one input pixel.
Fixed support_of(const AxisMap& map) { return std::max(kFixedOne, map.size / map.outputs); }

/// The middle of output i.
Fixed centre_of(const AxisMap& map, int output) {
  return map.begin + map.size * (2 * int64_t{output} + 1) / (2 * int64_t{map.outputs});
}

/// First pixel whose middle lies less than `support` left of `centre`, inside the map's bounds.
int first_tap(const AxisMap& map, Fixed centre, Fixed support) {
  const int pixel = floor_pixel(centre - support + kFixedOne / 2);
  return std::clamp(pixel, map.first, map.last - 1);
}

int end_of_taps(const AxisMap& map, Fixed centre, Fixed support) {
  const int pixel = floor_pixel(centre + support - kFixedOne / 2 - 1) + 1;
  return std::clamp(pixel, map.first + 1, map.last);
}

}  // namespace

InputRange input_range(const AxisMap& map) {
  const Fixed support = support_of(map);
  return {first_tap(map, centre_of(map, 0), support),
          end_of_taps(map, centre_of(map, map.outputs - 1), support)};
}

void AxisFilter::build(const AxisMap& map, int multiple) {
  const Fixed support = support_of(map);
  // No more middles of pixels than this lie strictly between centre − support and centre + support.
  const int most = floor_pixel(2 * support + kFixedOne - 1);
  taps_ = (std::min(most, map.last - map.first) + multiple - 1) / multiple * multiple;
  starts_.resize(static_cast<size_t>(map.outputs));
  counts_.resize(static_cast<size_t>(map.outputs));
  weights_.assign(static_cast<size_t>(map.outputs) * static_cast<size_t>(taps_), 0);
  for (int i = 0; i < map.outputs; ++i) build_output(map, support, i);
}

void AxisFilter::build_output(const AxisMap& map, Fixed support, int output) {
  const Fixed centre = centre_of(map, output);
  const int first = first_tap(map, centre, support);
  const int count = std::min(end_of_taps(map, centre, support) - first, taps_);
  // Heights of less than 20 bits: then the sum over 2^28 pixels, times 2^15, does not overflow.
  const int shift =
      std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(support))) - 20);
  const auto height = [&](int tap) {
    const Fixed middle = (static_cast<Fixed>(first + tap) << kFixedBits) + kFixedOne / 2;
    return std::max<Fixed>(0, support - std::abs(middle - centre)) >> shift;
  };
  int64_t total = 0;
  for (int t = 0; t < count; ++t) total += height(t);
  const auto place = static_cast<size_t>(map.mirrored ? map.outputs - 1 - output : output);
  starts_[place] = first;
  counts_[place] = total == 0 ? 1 : count;
  int16_t* weights = weights_.data() + place * static_cast<size_t>(taps_);
  if (total == 0) {  // the bounds leave out every pixel the filter sees: take the nearest
    weights[0] = kWeightOne - 1;
    return;
  }
  // Differences of the rounded running sum: they add up exactly, and none is negative.
  int64_t sum = 0;
  int64_t before = 0;
  for (int t = 0; t < count; ++t) {
    sum += height(t);
    const int64_t now = (sum * kWeightOne + total / 2) / total;
    weights[t] = static_cast<int16_t>(std::min(now - before, kWeightOne - 1));
    before = now;
  }
}

}  // namespace outrigger::data::pixels
