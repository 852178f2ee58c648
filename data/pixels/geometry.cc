#include "data/pixels/geometry.h"

#include <algorithm>
#include <cstring>

namespace outrigger::data::pixels {
namespace {

constexpr int kTransposeTile = 16;

/// Calls `copy(x, y)` for all pixels in small squares, so that neither rows nor columns thrash the
/// cache.
template <typename Copy>
void for_each_in_tiles(int width, int height, const Copy& copy) {
  for (int top = 0; top < height; top += kTransposeTile) {
    for (int left = 0; left < width; left += kTransposeTile) {
      const int bottom = std::min(height, top + kTransposeTile);
      const int right = std::min(width, left + kTransposeTile);
      for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) copy(x, y);
      }
    }
  }
}

template <typename Pixel>
Pixel load(const uint8_t* row, int x) {
  Pixel pixel;
  std::memcpy(&pixel, row + sizeof(Pixel) * static_cast<size_t>(x), sizeof pixel);
  return pixel;
}

template <typename Pixel>
void store(uint8_t* row, int x, Pixel pixel) {
  std::memcpy(row + sizeof(Pixel) * static_cast<size_t>(x), &pixel, sizeof pixel);
}

/// a + (b − a) * part / 256 in each byte of a pixel, rounded: the even and the odd bytes as two
/// halves of a word each.
template <typename Pixel>
uint32_t blend(Pixel a, Pixel b, uint32_t part) {
  constexpr uint32_t kEven = 0x00FF00FF;
  constexpr uint32_t kHalf = 0x00800080;
  const uint32_t rest = 256 - part;
  const uint32_t even = ((a & kEven) * rest + (b & kEven) * part + kHalf) >> 8 & kEven;
  const uint32_t odd =
      ((uint32_t{a} >> 8 & kEven) * rest + (uint32_t{b} >> 8 & kEven) * part + kHalf) & ~kEven;
  return even | odd;
}

template <typename Pixel>
void rotate_pixels(const Image& source, Turn turn, Pixel fill, Image& output) {
  const int width = source.width();
  const int height = source.height();
  const auto at = [&](int64_t x, int64_t y) {
    const bool inside = x >= 0 && x < width && y >= 0 && y < height;
    return inside ? load<Pixel>(source.row(static_cast<int>(y)), static_cast<int>(x)) : fill;
  };
  for (int y = 0; y < height; ++y) {
    // Where output (0, y) comes from, in 2^-17 pixels because the middle may lie between two.
    const int64_t up = 2 * int64_t{y} - (height - 1);
    const int64_t left = -int64_t{width - 1};
    int64_t from_x = turn.cosine * left - turn.sine * up + (int64_t{width - 1} << 16);
    int64_t from_y = turn.sine * left + turn.cosine * up + (int64_t{height - 1} << 16);
    for (int x = 0; x < width;
         ++x, from_x += 2 * int64_t{turn.cosine}, from_y += 2 * int64_t{turn.sine}) {
      const int64_t px = from_x >> 17;
      const int64_t py = from_y >> 17;
      const auto part_x = static_cast<uint32_t>(from_x >> 9 & 255);
      const auto part_y = static_cast<uint32_t>(from_y >> 9 & 255);
      const uint32_t above = blend(at(px, py), at(px + 1, py), part_x);
      const uint32_t below = blend(at(px, py + 1), at(px + 1, py + 1), part_x);
      store(output.row(y), x, static_cast<Pixel>(blend(above, below, part_y)));
    }
  }
}

}  // namespace

void transpose(const Image& source, Image& output) {
  output.reshape(source.width(), source.height(), source.channels());
  if (source.channels() == 4) {
    for_each_in_tiles(source.width(), source.height(), [&](int x, int y) {
      store(output.row(x), y, load<uint32_t>(source.row(y), x));
    });
  } else {
    for_each_in_tiles(source.width(), source.height(),
                      [&](int x, int y) { output.row(x)[y] = source.row(y)[x]; });
  }
}

Turn turn_of(int64_t degrees) {
  constexpr double kRadians = 3.14159265358979323846 / 180 / 65536;
  const double x = static_cast<double>(degrees) * kRadians;
  // Taylor's series; at |x| <= pi the terms behind x^27 are below 1e-14.
  double sine = 0;
  double cosine = 0;
  double term = 1;
  for (int n = 0; n < 28; ++n) {
    const double sign = n % 4 < 2 ? 1 : -1;
    (n % 2 == 0 ? cosine : sine) += sign * term;
    term = term * x / (n + 1);
  }
  const auto fixed = [](double value) {
    const double scaled = value * 65536;
    return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  };
  return {fixed(sine), fixed(cosine)};
}

void rotate(const Image& source, Turn turn, uint8_t fill, Image& output) {
  output.reshape(source.height(), source.width(), source.channels());
  if (source.channels() == 4) {
    rotate_pixels<uint32_t>(source, turn, 0x01010101U * fill, output);
  } else {
    rotate_pixels<uint8_t>(source, turn, fill, output);
  }
}

void fill_box(Image& image, const Box& box, uint8_t value) {
  const auto channels = static_cast<size_t>(image.channels());
  for (int y = box.y; y < box.y + box.height; ++y) {
    std::memset(image.row(y) + channels * static_cast<size_t>(box.x), value,
                channels * static_cast<size_t>(box.width));
  }
}

}  // namespace outrigger::data::pixels
