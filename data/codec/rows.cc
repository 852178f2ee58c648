#include "data/codec/rows.h"

namespace outrigger::data::codec {
namespace {

/// a * b / 255, rounded.
inline uint8_t scaled(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

}  // namespace

void rgbx_to_grey(const uint8_t* rgbx, size_t pixels, uint8_t* grey) {
  for (size_t i = 0; i < pixels; ++i) grey[i] = luma(rgbx[4 * i], rgbx[4 * i + 1], rgbx[4 * i + 2]);
}

void grey_to_rgbx(const uint8_t* grey, size_t pixels, uint8_t* rgbx) {
  for (size_t i = 0; i < pixels; ++i) {
    rgbx[4 * i] = rgbx[4 * i + 1] = rgbx[4 * i + 2] = grey[i];
    rgbx[4 * i + 3] = 255;
  }
}

void cmyk_to_rgbx(uint8_t* cmyk, size_t pixels, bool inverted) {
  const unsigned flip = inverted ? 0 : 255;
  for (size_t i = 0; i < pixels; ++i) {
    uint8_t* p = cmyk + 4 * i;
    const unsigned key = p[3] ^ flip;
    for (int c = 0; c < 3; ++c) p[c] = scaled(p[c] ^ flip, key);
    p[3] = 255;
  }
}

}  // namespace outrigger::data::codec
