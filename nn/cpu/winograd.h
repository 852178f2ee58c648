#pragma once

#include <cstddef>
#include <cstdint>

#include "nn/cpu/convolution_shape.h"
#include "nn/cpu/kernels/kernels.h"

/// Convolutions of 3 x 3 by Winograd's filtering, on one thread
/// (docs/decisions/0026-convolutions-by-winograd.md). A result's bits depend on the shape and the
/// instruction set, not on how many samples are given at a time.
namespace outrigger::nn::cpu {

/// Whether convolutions of this shape are computed so.
bool is_winograd(const ConvolutionShape& shape);

/// The forward pass, or the one from the output's gradient to the input's, which is a convolution
/// with the taps turned round.
class WinogradConvolution {
 public:
  enum class Pass : uint8_t { kForward, kBackwardData };
  WinogradConvolution(const ConvolutionShape& shape, Pass pass);

  size_t weight_bytes() const;
  size_t scratchpad_bytes() const;
  /// From PyTorch's layout, {out, in, 3, 3}.
  void load(const float* plain, std::byte* packed) const;
  /// `bias` may be null.
  void execute(std::byte* scratchpad, const float* from, const std::byte* packed, const float* bias,
               float* to, int64_t samples) const;

 private:
  const WinogradKernels* kernels_;
  Pass pass_;
  WinogradMap from_, to_;
  int64_t tiles_;  // at a time
};

/// The gradient of the weights over so many samples, as {3, 3, in, out}.
class WinogradWeightGradient {
 public:
  WinogradWeightGradient(const ConvolutionShape& shape, int64_t samples);

  size_t scratchpad_bytes() const;
  void execute(std::byte* scratchpad, const float* x, const float* dy, float* gradient) const;

 private:
  void multiply(const WinogradPlanes& in, const WinogradPlanes& out, int64_t tiles, float* points,
                int64_t in_panel) const;

  const WinogradKernels* kernels_;
  WinogradMap in_, out_;
  int64_t all_tiles_, tiles_;  // of the samples; at a time
};

}  // namespace outrigger::nn::cpu
