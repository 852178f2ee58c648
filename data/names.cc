#include "data/names.h"

#include <algorithm>
#include <array>
#include <string>

namespace outrigger::data {

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kExtensions = {"jpg", "jpeg", "png", "pgm", "ppm"};
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  // ASCII only: the listing must not depend on a machine's locale.
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

}  // namespace outrigger::data
