#include "data/names.h"

#include <algorithm>
#include <array>

namespace outrigger::data {

std::string suffix_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  std::string suffix(name.substr(dot + 1));
  // ASCII only: the listing must not depend on a machine's locale.
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return suffix;
}

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kSuffixes = {"jpg", "jpeg", "png", "pgm", "ppm"};
  return std::find(kSuffixes.begin(), kSuffixes.end(), suffix_of(name)) != kSuffixes.end();
}

}  // namespace outrigger::data
