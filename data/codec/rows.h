#pragma once

#include <cstddef>
#include <cstdint>

namespace outrigger::data::codec {

// Conversions of rows of pixels. `rgbx` pixels have 4 bytes, the last without meaning (written as
// 255).

/// Luma with JPEG's weights (ITU-R BT.601: 0.299, 0.587, 0.114 in units of 2^-16), rounded.
inline uint8_t luma(unsigned r, unsigned g, unsigned b) {
  return static_cast<uint8_t>((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
}

void rgbx_to_grey(const uint8_t* rgbx, size_t pixels, uint8_t* grey);
void grey_to_rgbx(const uint8_t* grey, size_t pixels, uint8_t* rgbx);

/// In place, 4 bytes a pixel. `inverted`: 255 means no ink, as Adobe's programs store it.
void cmyk_to_rgbx(uint8_t* cmyk, size_t pixels, bool inverted);

}  // namespace outrigger::data::codec
