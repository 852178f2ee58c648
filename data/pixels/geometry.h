#pragma once

#include <cstdint>

#include "data/image.h"

namespace outrigger::data::pixels {

/// Exchanges rows and columns; 1 or 4 channels.
void transpose(const Image& source, Image& output);

/// A turn, as its sine and cosine in units of 2^-16.
struct Turn {
  int32_t sine = 0;
  int32_t cosine = 1 << 16;
};

/// `degrees` in units of 2^-16, between −180 and 180 degrees. Computed with the four basic
/// operations of IEEE double alone, never by the machine's libm, so that it is the same everywhere.
Turn turn_of(int64_t degrees);

/// Turns the image counter-clockwise around its middle, bilinear with weights of 8 bits; `fill`
/// where nothing was. 1 or 4 channels.
void rotate(const Image& source, Turn turn, uint8_t fill, Image& output);

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// Sets all channels of the pixels in `box`, which lies inside the image.
void fill_box(Image& image, const Box& box, uint8_t value);

}  // namespace outrigger::data::pixels
