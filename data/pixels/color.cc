#include "data/pixels/color.h"

#include <algorithm>
#include <array>

#include "data/codec/rows.h"

namespace outrigger::data::pixels {
namespace {

constexpr int kFactorBits = 16;
constexpr int64_t kFactorHalf = 1 << (kFactorBits - 1);

uint8_t clamp_to_byte(int64_t value) {
  return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
}

using Table = std::array<uint8_t, 256>;

/// table[v] = pivot + (v − pivot) * factor, rounded; pivot in units of 2^-16.
Table linear_table(int64_t pivot, int64_t factor) {
  Table table;
  for (int64_t v = 0; v < 256; ++v) {
    const int64_t distance = (v << kFactorBits) - pivot;
    table[static_cast<size_t>(v)] =
        clamp_to_byte((pivot + (distance * factor >> kFactorBits) + kFactorHalf) >> kFactorBits);
  }
  return table;
}

void look_up(Image& image, const Table& table) {
  for (uint8_t& value : image.pixels()) value = table[value];
}

/// In units of 2^-16.
int64_t mean_luma(const Image& image) {
  uint64_t sum = 0;
  const auto pixels = image.pixels();
  const size_t step = static_cast<size_t>(image.channels());
  for (size_t i = 0; i < pixels.size(); i += step) {
    sum += step == 1 ? pixels[i] : codec::luma(pixels[i], pixels[i + 1], pixels[i + 2]);
  }
  return static_cast<int64_t>((sum << kFactorBits) / (pixels.size() / step));
}

/// One sextant of the hue circle, from one pure colour to its mix with the next.
constexpr int kSextant = 1 << 13;

/// spread * kSextant / 2^13 for the divisions that the hue needs: 2^24 / d, rounded up, for d in 1
/// … 255.
constexpr std::array<uint32_t, 256> kReciprocals = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t d = 1; d < 256; ++d) table[d] = ((1U << 24) + d - 1) / d;
  return table;
}();

/// a * kSextant / d for 0 <= a <= d.
int part_of_sextant(int a, int d) {
  return static_cast<int>(
      (uint64_t{static_cast<uint32_t>(a)} * kReciprocals[static_cast<size_t>(d)]) >> 11);
}

/// Hue in [0, 6 * kSextant) of a pixel whose largest and smallest parts differ by `spread` > 0.
int hue_of(int r, int g, int b, int spread) {
  const int most = std::max({r, g, b});
  int hue = 0;
  if (most == r) {
    hue = g >= b ? part_of_sextant(g - b, spread) : 6 * kSextant - part_of_sextant(b - g, spread);
  } else if (most == g) {
    hue =
        2 * kSextant + (b >= r ? part_of_sextant(b - r, spread) : -part_of_sextant(r - b, spread));
  } else {
    hue =
        4 * kSextant + (r >= g ? part_of_sextant(r - g, spread) : -part_of_sextant(g - r, spread));
  }
  return hue;
}

/// The pixel of that hue whose largest and smallest parts are `most` and `least`.
void set_hue(uint8_t* pixel, int hue, int most, int least) {
  const int sextant = hue / kSextant;
  const int part = hue % kSextant;
  const int rise = ((most - least) * part + kSextant / 2) / kSextant;
  const int middle = sextant % 2 == 0 ? least + rise : most - rise;
  // For each sextant which of (most, middle, least) red, green and blue are.
  constexpr uint8_t kOrder[6][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1},
                                    {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
  const int values[3] = {most, middle, least};
  for (int c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(values[kOrder[sextant][c]]);
}

}  // namespace

void change_brightness(Image& image, int64_t factor) { look_up(image, linear_table(0, factor)); }

void change_contrast(Image& image, int64_t factor) {
  look_up(image, linear_table(mean_luma(image), factor));
}

void change_saturation(Image& image, int64_t factor) {
  if (image.channels() != 4) return;
  const auto pixels = image.pixels();
  for (size_t i = 0; i < pixels.size(); i += 4) {
    const int64_t grey = codec::luma(pixels[i], pixels[i + 1], pixels[i + 2]);
    for (size_t c = i; c < i + 3; ++c) {
      pixels[c] =
          clamp_to_byte(grey + (((pixels[c] - grey) * factor + kFactorHalf) >> kFactorBits));
    }
  }
}

void change_hue(Image& image, int64_t turn) {
  if (image.channels() != 4) return;
  constexpr int kCircle = 6 * kSextant;
  const int shift = static_cast<int>((turn * kCircle >> kFactorBits) + kCircle) % kCircle;
  const auto pixels = image.pixels();
  for (size_t i = 0; i < pixels.size(); i += 4) {
    const int r = pixels[i];
    const int g = pixels[i + 1];
    const int b = pixels[i + 2];
    const int most = std::max({r, g, b});
    const int least = std::min({r, g, b});
    if (most == least) continue;
    const int hue = hue_of(r, g, b, most - least) + shift;
    set_hue(&pixels[i], hue % kCircle, most, least);
  }
}

}  // namespace outrigger::data::pixels
