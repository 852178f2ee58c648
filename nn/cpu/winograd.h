#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/own_convolution.h"

/// Convolutions of 3 x 3 by Winograd's filtering (docs/decisions/0026-convolutions-by-winograd.md).
namespace outrigger::nn::cpu {

/// Whether convolutions of this shape are computed so.
bool is_winograd(const ConvolutionShape& shape);

/// The forward pass, or the one from the output's gradient to the input's, which is a convolution
/// with the taps turned round.
class WinogradConvolution final : public OwnConvolution {
 public:
  WinogradConvolution(const ConvolutionShape& shape, ConvolutionPass pass);

  size_t weight_bytes() const override;
  size_t scratchpad_bytes() const override;
  void load(const float* plain, std::byte* packed) const override;
  void execute(std::byte* scratchpad, const void* from, const std::byte* packed, const float* bias,
               void* to, int64_t samples) const override;

 private:
  const float* taps_of(const float* plain, int64_t from, int64_t to) const;

  const Kernels* kernels_;
  ConvolutionPass pass_;
  WinogradMap from_, to_;
  int64_t group_;  // channels of one; 0: no groups
  int64_t inner_;  // channels that an output is computed from, other groups' of its panel too
  int64_t tiles_;  // at a time
};

class WinogradWeightGradient final : public OwnWeightGradient {
 public:
  WinogradWeightGradient(const ConvolutionShape& shape, int64_t samples);

  size_t scratchpad_bytes() const override;
  void execute(std::byte* scratchpad, const void* x, const void* dy,
               float* gradient) const override;

 private:
  void multiply(const WinogradPlanes& in, const WinogradPlanes& out, int64_t tiles, float* points,
                int64_t in_panel) const;
  void take_groups(const float* taps, float* gradient) const;

  const Kernels* kernels_;
  WinogradMap in_, out_;
  int64_t group_;              // channels of one; 0: no groups
  int64_t outs_;               // output channels that are multiplied with an input channel
  int64_t all_tiles_, tiles_;  // of the samples; at a time
};

}  // namespace outrigger::nn::cpu
