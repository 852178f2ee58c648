#pragma once

#include <string>
#include <string_view>

namespace outrigger::data {

/// What stands behind the last dot of a file's name, in small letters; empty where there is none.
std::string suffix_of(std::string_view name);

/// Whether the name ends in .jpg, .jpeg, .png, .pgm or .ppm, in any case.
bool is_image_name(std::string_view name);

}  // namespace outrigger::data
