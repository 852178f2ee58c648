#pragma once

#include <array>
#include <cstdint>

#include "common/random.h"
#include "data/pixels/geometry.h"

namespace outrigger::data::pixels {

// Random choices in whole numbers, so that they are the same on every machine. Real options become
// multiples of 2^-16 once, when they are read.

constexpr int kUnitBits = 16;
constexpr int64_t kUnit = 1 << kUnitBits;

/// The nearest multiple of 2^-16, in units of 2^-16. `value` is finite and below 2^31 in size.
int64_t to_units(double value);

/// Uniform in [low, high], in units of 2^-16.
int64_t draw_between(RandomStream& random, int64_t low, int64_t high);

/// True with the probability `units` / 2^16.
bool draw_chance(RandomStream& random, int64_t units);

/// The square root, rounded to the nearest whole number.
uint64_t rounded_root(uint64_t value);

/// Numbers whose logarithm is uniform between those of two bounds: low * ratio^u, where u has 16
/// bits and the powers ratio^(2^-k) were made by taking square roots in fixed point.
class LogUniform {
 public:
  /// 0 < low <= high <= 200 * low, both in units of 2^-16, at most 2^8.
  LogUniform(int64_t low, int64_t high);
  /// In units of 2^-16.
  int64_t draw(RandomStream& random) const;

 private:
  static constexpr int kPowers = 16;
  int64_t low_;
  int64_t high_;
  std::array<uint64_t, kPowers> powers_;  // in units of 2^-28
};

/// How boxes are drawn: a part of the area uniform in [least, most] (units of 2^-16) and an aspect
/// (width / height).
struct BoxDistribution {
  int64_t least_area = 0;
  int64_t most_area = 0;
  LogUniform aspect;
};

/// Draws up to ten boxes until one fits into width x height and puts it anywhere; false if none
/// did.
bool draw_box(RandomStream& random, const BoxDistribution& distribution, int width, int height,
              Box& box);

/// The largest box in the middle of width x height whose aspect lies between the bounds (units of
/// 2^-16).
Box middle_box(int width, int height, int64_t min_ratio, int64_t max_ratio);

}  // namespace outrigger::data::pixels
