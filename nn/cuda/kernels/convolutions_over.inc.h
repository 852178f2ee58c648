#pragma once

// Convolutions over a launcher, as kernels_over.inc.h.

#include <utility>

#include "nn/cuda/kernels/convolve.inc.h"
#include "nn/cuda/kernels/depthwise.inc.h"
#include "nn/cuda/kernels/types.inc.h"

namespace outrigger::nn::cuda {

template <typename Launcher>
class ConvolutionKernels : public virtual Kernels {
 public:
  explicit ConvolutionKernels(const Launcher& launcher) : launcher_(launcher) {}

  void convolve(ConstArray x, ConstArray weights, Array y,
                const ConvolutionShape& shape) const override {
    with_type(shape.type, [&]<typename T>(T) {
      if (shape.goes_along_rows()) {
        depthwise<T>(in<T>(x), in<T>(weights), out<T>(y), Towards::kOutput, false, shape);
      } else {
        const uint32_t outputs = shape.out_channels * output_places(shape);
        launcher_.each(outputs, ConvolveKernel<T>{in<T>(x), in<T>(weights), out<T>(y), shape});
      }
    });
  }
  void convolve_backward(ConstArray dy, ConstArray weights, Array dx, bool add,
                         const ConvolutionShape& shape) const override {
    with_type(shape.type, [&]<typename T>(T) {
      if (shape.goes_along_rows()) {
        depthwise_input<T>(in<T>(dy), in<T>(weights), out<T>(dx), add, shape);
      } else if (has_whole_map_kernel(shape)) {
        launcher_.each(inputs(shape), WholeMapInputKernel<T>{in<T>(dy), in<T>(weights), out<T>(dx),
                                                             add, area(shape), shape.in_channels});
      } else {
        launcher_.each(inputs(shape), ConvolveBackwardKernel<T>{in<T>(dy), in<T>(weights),
                                                                out<T>(dx), add, shape});
      }
    });
  }
  void convolve_weights(ConstArray x, ConstArray dy, float* gradient,
                        const ConvolutionShape& shape) const override {
    with_packs(shape.type, shape.in_channels, [&]<typename T, int N>(T, Width<N>) {
      if (shape.goes_along_rows()) {
        depthwise_weights<T>(in<T>(x), in<T>(dy), gradient, shape);
      } else if (has_whole_map_kernel(shape)) {
        launcher_.columns({shape.samples, area(shape) * shape.in_channels}, 1,
                          WholeMapWeightsKernel<T, N>{in<T>(x), in<T>(dy), gradient, area(shape),
                                                      shape.in_channels});
      } else {
        each_weight<T>(in<T>(x), in<T>(dy), gradient, shape);
      }
    });
  }

 private:
  static uint32_t output_rows(const ConvolutionShape& shape) {
    return shape.samples * static_cast<uint32_t>(shape.out_height);
  }
  static uint32_t output_places(const ConvolutionShape& shape) {
    return output_rows(shape) * static_cast<uint32_t>(shape.out_width);
  }
  /// From dy's map to dx's.
  static ConvolutionShape turned(ConvolutionShape shape) {
    std::swap(shape.in_height, shape.out_height);
    std::swap(shape.in_width, shape.out_width);
    shape.padding = shape.kernel - 1 - shape.padding;
    return shape;
  }

  static uint32_t area(const ConvolutionShape& shape) {
    return static_cast<uint32_t>(shape.in_height * shape.in_width);
  }
  static uint32_t inputs(const ConvolutionShape& shape) {
    return shape.samples * shape.in_channels * area(shape);
  }
  /// Calls f(Width<kGroup>(), Width<kStride>()).
  template <typename F>
  static void with_window(const ConvolutionShape& shape, const F& f) {
    const auto with_group = [&]<int kGroup>(Width<kGroup> group) {
      if (shape.stride == 1) {
        f(group, Width<1>());
      } else {
        f(group, Width<2>());
      }
    };
    if (shape.group_in() == 1) {
      with_group(Width<1>());
    } else {
      with_group(Width<2>());
    }
  }

  template <typename T>
  void depthwise(const T* x, const T* weights, T* y, Towards towards, bool add,
                 const ConvolutionShape& shape) const {
    with_window(shape, [&]<int kGroup, int kStride>(Width<kGroup>, Width<kStride>) {
      launcher_.each(output_rows(shape) * (shape.out_channels / kDepthwiseWidth<kGroup>),
                     DepthwiseKernel<T, kGroup, kStride>{x, weights, y, towards, add, shape});
    });
  }
  template <typename T>
  void depthwise_input(const T* dy, const T* weights, T* dx, bool add,
                       const ConvolutionShape& shape) const {
    if (shape.stride == 1)
      return depthwise<T>(dy, weights, dx, Towards::kInput, add, turned(shape));
    with_window(shape, [&]<int kGroup, int kStride>(Width<kGroup>, Width<kStride>) {
      const auto pairs = static_cast<uint32_t>((shape.in_height + 1) / 2);
      launcher_.each(shape.samples * pairs * (shape.in_channels / kDepthwiseWidth<kGroup>),
                     DepthwiseInputKernel<T, kGroup>{dy, weights, dx, add, shape});
    });
  }
  template <typename T>
  void depthwise_weights(const T* x, const T* dy, float* gradient,
                         const ConvolutionShape& shape) const {
    with_window(shape, [&]<int kGroup, int kStride>(Width<kGroup>, Width<kStride>) {
      launcher_.columns({output_rows(shape), shape.out_channels}, 1,
                        DepthwiseWeightsKernel<T, kGroup, kStride>{x, dy, gradient, shape});
    });
  }
  template <typename T>
  void each_weight(const T* x, const T* dy, float* gradient, const ConvolutionShape& shape) const {
    const Matrix size{output_places(shape), shape.out_channels};
    for (int tap = 0; tap < shape.kernel * shape.kernel; ++tap) {
      for (uint32_t c = 0; c < shape.group_in(); ++c)
        launcher_.columns(size, 1, ConvolveWeightsKernel<T>{x, dy, gradient, shape, tap, c});
    }
  }
  const Launcher& launcher_;
};

}  // namespace outrigger::nn::cuda
