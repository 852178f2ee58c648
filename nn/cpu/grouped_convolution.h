#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/own_convolution.h"

/// Convolutions in groups of 1, 2 or 4 channels, by the definition, in float32 and bfloat16
/// (docs/decisions/0045-convolutions-in-narrow-groups.md).
namespace outrigger::nn::cpu {

/// Whether convolutions of this shape are computed so.
bool is_grouped(const ConvolutionShape& shape);

/// The forward pass, or the one from the output's gradient to the input's, which is a convolution
/// with the taps turned round.
class GroupedConvolution final : public OwnConvolution {
 public:
  GroupedConvolution(const ConvolutionShape& shape, ConvolutionPass pass);

  size_t weight_bytes() const override;
  size_t scratchpad_bytes() const override;
  void load(const float* plain, std::byte* packed) const override;
  void execute(std::byte* scratchpad, const void* from, const std::byte* packed, const float* bias,
               void* to, int64_t samples) const override;

 private:
  const Kernels* kernels_ = &kernels();
  const ConvolutionPass pass_;
  const ConvolutionShape shape_;  // as the pass reads and writes
};

class GroupedWeightGradient final : public OwnWeightGradient {
 public:
  GroupedWeightGradient(const ConvolutionShape& shape, int64_t samples)
      : shape_(shape), samples_(samples) {}

  size_t scratchpad_bytes() const override;
  void execute(std::byte* scratchpad, const void* x, const void* dy,
               float* gradient) const override;

 private:
  const Kernels* kernels_ = &kernels();
  const ConvolutionShape shape_;
  const int64_t samples_;
};

}  // namespace outrigger::nn::cpu
