#pragma once

#include <cstdint>

#include "data/image.h"

namespace outrigger::data::pixels {

// Changes of colour, in place, on images of 1 or 4 channels (R, G, B, unused). Factors are in units
// of 2^-16.

/// Every value times `factor`.
void change_brightness(Image& image, int64_t factor);
/// The distance from the image's mean luma times `factor`.
void change_contrast(Image& image, int64_t factor);
/// The distance from the pixel's own luma times `factor`; nothing on grey images.
void change_saturation(Image& image, int64_t factor);
/// Turns the hue (of HSV) by `turn` / 2^16 of the circle, −2^15 to 2^15; nothing on grey images.
void change_hue(Image& image, int64_t turn);

}  // namespace outrigger::data::pixels
