#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/tensor.h"

/// What a network learns and keeps, at fixed places in flat float32 arenas.
namespace outrigger::nn {

/// A piece of an arena, in floats.
struct Range {
  int64_t offset = 0;
  int64_t size = 0;
  int64_t end() const { return offset + size; }
};

template <typename T>
std::span<T> part_of(std::span<T> arena, Range range) {
  return arena.subspan(static_cast<size_t>(range.offset), static_cast<size_t>(range.size));
}

/// How a parameter is initialised and whether weight decay touches it by default.
enum class ParameterKind : uint8_t { kWeight, kBias, kNormScale, kNormShift, kSlope };

/// One trainable tensor. Its name and shape are those of the PyTorch model of the same
/// architecture.
struct Parameter {
  std::string name;
  Shape shape;
  ParameterKind kind = ParameterKind::kWeight;
  Range range;  // in the parameter arena
  int layer = 0;
  bool trainable = true;  // false: in a frozen layer, or a norm's fixed scale
};

/// A batch norm's running averages. In the buffer arena: mean {C}, then variance {C} (unbiased, as
/// PyTorch's). In a micro-batch's statistics, laid out the same: mean {C}, then biased variance
/// {C}.
struct NormBuffer {
  std::string name;  // PyTorch's prefix: "<name>.running_mean", "<name>.running_var"
  int64_t channels = 0;
  Range range;  // 2 * channels floats in the buffer arena
  int layer = 0;
  float momentum = 0.1f;
  int64_t values_per_sample = 1;  // H * W: with m samples a mean is over m * H * W values
};

}  // namespace outrigger::nn
