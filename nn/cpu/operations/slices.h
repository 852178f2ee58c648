#pragma once

#include <algorithm>
#include <cstdint>

namespace outrigger::nn::cpu {

/// Columns of a matrix in equal slices, one task each: by the layer's size alone, never by the
/// number of threads.
struct Slices {
  explicit Slices(int64_t all_columns = 1)
      : columns(all_columns),
        width(std::clamp<int64_t>((all_columns / 16 + 15) / 16 * 16, 16, 256)) {}
  int count() const { return static_cast<int>((columns + width - 1) / width); }
  int64_t first(int slice) const { return slice * width; }
  int64_t size(int slice) const { return std::min(width, columns - first(slice)); }

  int64_t columns;
  int64_t width;
};

}  // namespace outrigger::nn::cpu
