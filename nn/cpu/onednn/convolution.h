#pragma once

#include <optional>

#include "nn/cpu/convolution_shape.h"
#include "nn/cpu/onednn/primitive.h"

namespace outrigger::nn::cpu::onednn {

/// A primitive for so many samples, and the layout in which it wants or gives weights.
struct ConvolutionPrimitive {
  Primitive primitive;
  dnnl::memory::desc weights;
  bool slow = false;  // only oneDNN's plain loops fit
};

/// PyTorch's layout, float32: {out, in / groups, kernel, kernel}.
dnnl::memory::desc plain_weights(const ConvolutionShape& shape);

/// execute(): x, weights, [bias], y
ConvolutionPrimitive convolution_forward(const ConvolutionShape& shape, int64_t samples, int slots);
/// execute(): dy, weights, dx
ConvolutionPrimitive convolution_backward_data(const ConvolutionShape& shape, int64_t samples,
                                               int slots);
/// execute(): x, dy, dweights (float32, in `layout` where given)
ConvolutionPrimitive convolution_backward_weights(
    const ConvolutionShape& shape, int64_t samples, int slots,
    const std::optional<dnnl::memory::desc>& layout = std::nullopt);

}  // namespace outrigger::nn::cpu::onednn
