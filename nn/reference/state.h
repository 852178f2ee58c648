#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/tensor.h"
#include "nn/program.h"

/// What a reference program keeps: its weights, and one micro-batch between forward and backward.
namespace outrigger::nn::reference {

struct ReferenceWeights final : Weights {
  std::vector<float> parameters;
  std::vector<float> averages;
};

// Everything between forward and backward. Place 0 of the lists is the segment's input, i + 1 its
// layer i's output.
struct ReferenceTape final : Tape {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;  // empty in inference
  std::vector<std::vector<float>> saved;      // of layer i
  std::vector<double> scratch;
  std::vector<float> statistics;
  std::vector<uint64_t> slots;
  std::vector<int32_t> labels;
};

// Copies between a float32 array and a tensor in its own type.
inline void load_values(const ConstTensorView& from, std::span<float> to) {
  if (from.type == ElementType::kFloat32) {
    std::copy_n(from.as<float>().begin(), to.size(), to.begin());
  } else {
    std::transform(from.as<uint16_t>().begin(),
                   from.as<uint16_t>().begin() + static_cast<std::ptrdiff_t>(to.size()), to.begin(),
                   from_bfloat16);
  }
}
inline void store_values(std::span<const float> from, const TensorView& to) {
  if (to.type == ElementType::kFloat32) {
    std::copy(from.begin(), from.end(), to.as<float>().begin());
  } else {
    std::transform(from.begin(), from.end(), to.as<uint16_t>().begin(), to_bfloat16);
  }
}

}  // namespace outrigger::nn::reference
