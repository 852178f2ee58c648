#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nn/cpu/convolution_shape.h"

/// Convolutions that this backend computes itself, on one thread; oneDNN has the others. A result's
/// bits depend on the shape and the instruction set, not on how many samples are given at a time.
namespace outrigger::nn::cpu {

/// Forward, or from the output's gradient to the input's.
enum class ConvolutionPass : uint8_t { kForward, kBackwardData };

class OwnConvolution {
 public:
  virtual ~OwnConvolution() = default;
  virtual size_t weight_bytes() const = 0;
  virtual size_t scratchpad_bytes() const = 0;
  /// From PyTorch's layout, {out, in / groups, kernel, kernel}.
  virtual void load(const float* plain, std::byte* packed) const = 0;
  /// Maps of `samples`, channels-last, one after the other, in the shape's type. `bias`: may be
  /// null; backward it is.
  virtual void execute(std::byte* scratchpad, const void* from, const std::byte* packed,
                       const float* bias, void* to, int64_t samples) const = 0;
};

/// The gradient of the weights over so many samples, as {kernel, kernel, in / groups, out}.
class OwnWeightGradient {
 public:
  virtual ~OwnWeightGradient() = default;
  virtual size_t scratchpad_bytes() const = 0;
  virtual void execute(std::byte* scratchpad, const void* x, const void* dy,
                       float* gradient) const = 0;
};

/// Null where oneDNN is to compute convolutions of this shape.
std::unique_ptr<const OwnConvolution> make_own_convolution(const ConvolutionShape& shape,
                                                           ConvolutionPass pass);
std::unique_ptr<const OwnWeightGradient> make_own_weight_gradient(const ConvolutionShape& shape,
                                                                  int64_t samples);

}  // namespace outrigger::nn::cpu
