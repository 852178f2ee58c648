#pragma once

#include "common/bytes.h"
#include "data/image.h"

namespace outrigger::data::codec {

/// A baseline JPEG of an image of 1 or 3 channels; `quality` 1 to 100.
Bytes write_jpeg(const Image& image, int quality);

}  // namespace outrigger::data::codec
