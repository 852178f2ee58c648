#include "nn/cuda/errors.h"

#include <array>
#include <cstdio>

namespace outrigger::nn::cuda {
namespace {

std::string readable(int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"bytes", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace

std::string describe(const Shortage& shortage) {
  std::string text = "the device's memory is too small: asked for " + readable(shortage.asked) +
                     " for " + shortage.what + "; " + readable(shortage.free) + " of " +
                     readable(shortage.total) + " are free";
  if (shortage.batch == 0 || shortage.asked <= 0) return text;
  const auto share = static_cast<double>(shortage.free) / static_cast<double>(shortage.asked);
  const auto fits = static_cast<int64_t>(share * static_cast<double>(shortage.batch));
  if (fits < 1) return text + "; not even one sample would fit";
  return text + "; a micro-batch of " + std::to_string(fits) + " would fit";
}

}  // namespace outrigger::nn::cuda
