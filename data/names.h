#pragma once

#include <string_view>

namespace outrigger::data {

/// Whether the name ends in .jpg, .jpeg, .png, .pgm or .ppm, in any case.
bool is_image_name(std::string_view name);

}  // namespace outrigger::data
