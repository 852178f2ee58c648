#include "data/pixels/draw.h"

#include <algorithm>
#include <cmath>

namespace outrigger::data::pixels {
namespace {

constexpr int kTries = 10;
constexpr int kPowerBits = 28;

/// The largest r with r * r <= value.
uint64_t floor_root(uint64_t value) {
  // IEEE's square root is exact but for its last bit, and so is the conversion: at most one off.
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(value)));
  while (root > UINT32_MAX || root * root > value) --root;
  while (root < UINT32_MAX && (root + 1) * (root + 1) <= value) ++root;
  return root;
}

}  // namespace

int64_t to_units(double value) {
  // What is no number, or far too large, is refused where options are checked, behind this.
  constexpr double kMost = 1 << 24;
  if (std::isnan(value)) return 0;
  return static_cast<int64_t>(std::floor(std::clamp(value, -kMost, kMost) * kUnit + 0.5));
}

int64_t draw_between(RandomStream& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below64(static_cast<uint64_t>(high - low) + 1));
}

bool draw_chance(RandomStream& random, int64_t units) {
  return static_cast<int64_t>(random.next_u32() >> kUnitBits) < units;
}

uint64_t rounded_root(uint64_t value) {
  const uint64_t root = floor_root(value);
  return value - root * root > root ? root + 1 : root;
}

LogUniform::LogUniform(int64_t low, int64_t high) : low_(low), high_(high) {
  // ratio <= 200 < 2^8, so that ratio * 2^28 * 2^28 fits in 64 bits.
  uint64_t power = (static_cast<uint64_t>(high) << kPowerBits) / static_cast<uint64_t>(low);
  for (uint64_t& p : powers_) p = power = rounded_root(power << kPowerBits);
}

int64_t LogUniform::draw(RandomStream& random) const {
  const uint32_t u = random.next_u32() >> (32 - kPowers);
  uint64_t value = static_cast<uint64_t>(low_) << 8;  // 8 more bits while multiplying
  for (int k = 0; k < kPowers; ++k) {
    if (u >> (kPowers - 1 - k) & 1) value = value * powers_[static_cast<size_t>(k)] >> kPowerBits;
  }
  return std::clamp(static_cast<int64_t>(value >> 8), low_, high_);
}

bool draw_box(RandomStream& random, const BoxDistribution& distribution, int width, int height,
              Box& box) {
  const int64_t area = int64_t{width} * height;
  for (int i = 0; i < kTries; ++i) {
    const int64_t part = draw_between(random, distribution.least_area, distribution.most_area);
    const int64_t aspect = distribution.aspect.draw(random);
    const auto target = static_cast<uint64_t>(area * part >> kUnitBits);
    const auto w =
        static_cast<int64_t>(rounded_root(target * static_cast<uint64_t>(aspect) >> kUnitBits));
    const auto h =
        static_cast<int64_t>(rounded_root((target << kUnitBits) / static_cast<uint64_t>(aspect)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto x = random.below(static_cast<uint32_t>(width - w + 1));
    const auto y = random.below(static_cast<uint32_t>(height - h + 1));
    box = {static_cast<int>(x), static_cast<int>(y), static_cast<int>(w), static_cast<int>(h)};
    return true;
  }
  return false;
}

Box middle_box(int width, int height, int64_t min_ratio, int64_t max_ratio) {
  int64_t w = width;
  int64_t h = height;
  if (w * kUnit < min_ratio * h) {
    h = std::max<int64_t>(1, (w * kUnit + min_ratio / 2) / min_ratio);
  } else if (w * kUnit > max_ratio * h) {
    w = std::max<int64_t>(1, (h * max_ratio + kUnit / 2) >> kUnitBits);
  }
  w = std::min<int64_t>(w, width);
  h = std::min<int64_t>(h, height);
  return {static_cast<int>((width - w) / 2), static_cast<int>((height - h) / 2),
          static_cast<int>(w), static_cast<int>(h)};
}

}  // namespace outrigger::data::pixels
