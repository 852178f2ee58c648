#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace outrigger::data::pixels {

/// Positions along an axis in units of 2^-16 pixels.
using Fixed = int64_t;
constexpr int kFixedBits = 16;
constexpr Fixed kFixedOne = Fixed{1} << kFixedBits;

/// One axis of a resampling: `outputs` pixels that lie evenly in [begin, begin + size).
struct AxisMap {
  Fixed begin = 0;
  Fixed size = 0;
  int outputs = 0;
  /// Only these input pixels may be looked at: [first, last).
  int first = 0;
  int last = 0;
  /// The outputs come in opposite order.
  bool mirrored = false;
};

/// The weights of a triangle filter along one axis, whose width grows with the shrinking
/// (antialias): output i is the sum over t < taps of weight[i * taps + t] * input[start[i] + t] /
/// 2^15. Weights are whole numbers >= 0 that sum to 2^15 (2^15 − 1 where one pixel has it all, so
/// that they fit in 16 bits); those behind the last one used are 0. Built anew for every image
/// without taking memory once it has been as large.
class AxisFilter {
 public:
  /// `taps` is rounded up to a multiple of `multiple`.
  void build(const AxisMap& map, int multiple);

  int outputs() const { return static_cast<int>(starts_.size()); }
  int taps() const { return taps_; }
  int start(int output) const { return starts_[static_cast<size_t>(output)]; }
  const int16_t* weights(int output) const {
    return weights_.data() + static_cast<size_t>(output) * static_cast<size_t>(taps_);
  }
  /// Weights in use; start(i) + count(i) does not pass the map's bounds.
  int count(int output) const { return counts_[static_cast<size_t>(output)]; }

 private:
  void build_output(const AxisMap& map, Fixed support, int output);

  int taps_ = 0;
  std::vector<int> starts_;
  std::vector<int> counts_;
  std::vector<int16_t> weights_;
};

/// Input pixels [first, last).
struct InputRange {
  int first = 0;
  int last = 0;
};

/// What a map's filter looks at.
InputRange input_range(const AxisMap& map);

}  // namespace outrigger::data::pixels
