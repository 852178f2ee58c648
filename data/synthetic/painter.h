#pragma once

#include "data/image.h"
#include "data/synthetic/face_model.h"

namespace outrigger::data::synthetic {

/// Draws one picture, uint8 {size, size, 3}.
void paint_face(const Identity& identity, const Shot& shot, int size, Image& image);

}  // namespace outrigger::data::synthetic
