#pragma once

// Kernels over a launcher: where loops run (a GPU, or the host in tests). What a launcher has:
//   each(count, f), columns(size, f), grouped_columns(size, groups, f), rows(size, f),
//   row_states(size, f), as told at the kernels that use them.

#include "common/error.h"
#include "nn/angular_margin.h"
#include "nn/cuda/kernels/elementwise.inc.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/norm.inc.h"
#include "nn/cuda/kernels/rows.inc.h"
#include "nn/cuda/kernels/training.inc.h"
#include "nn/cuda/kernels/window.inc.h"

namespace outrigger::nn::cuda {

/// Calls f(T{}) with the array's element type.
template <typename F>
void with_type(Stored type, const F& f) {
  if (type == Stored::kBFloat16) {
    f(BFloat16{});
  } else if (type == Stored::kFloat16) {
    f(Float16{});
  } else {
    f(float{});
  }
}
/// Calls f(A{}, B{}) for two arrays of one type, or of which one is float32.
template <typename F>
void with_types(Stored a, Stored b, const F& f) {
  if (a == b) {
    with_type(a, [&]<typename T>(T) { f(T{}, T{}); });
  } else if (a == Stored::kFloat32) {
    with_type(b, [&]<typename T>(T) { f(float{}, T{}); });
  } else {
    ensure(b == Stored::kFloat32, "of two types one is float32");
    with_type(a, [&]<typename T>(T) { f(T{}, float{}); });
  }
}
template <typename T>
const T* in(const ConstArray& array) {
  return static_cast<const T*>(array.data);
}
template <typename T>
T* out(const Array& array) {
  return static_cast<T*>(array.data);
}

template <typename Launcher>
class MapKernels : public virtual Kernels {
 public:
  explicit MapKernels(const Launcher& launcher) : launcher_(launcher) {}

  void normalize(const uint8_t* pixels, const float* mean_factor, Array to,
                 Matrix size) const override {
    with_type(to.type, [&]<typename T>(T) {
      launcher_.each(size.size(),
                     NormalizeKernel<T>{pixels, mean_factor, out<T>(to), size.columns});
    });
  }
  void dequantise(const uint8_t* bytes, bool is_signed, const float* scales, Array to,
                  Matrix size) const override {
    with_type(to.type, [&]<typename T>(T) {
      launcher_.each(size.size(),
                     DequantiseKernel<T>{bytes, is_signed, scales, out<T>(to), size.columns});
    });
  }
  void convert(ConstArray from, Array to, uint32_t count, bool add) const override {
    with_types(from.type, to.type, [&]<typename From, typename To>(From, To) {
      launcher_.each(count, ConvertKernel<From, To>{in<From>(from), out<To>(to), add});
    });
  }
  void add(ConstArray a, ConstArray b, Array to, uint32_t count, bool relu) const override {
    with_type(to.type, [&]<typename T>(T) {
      launcher_.each(count, AddKernel<T>{in<T>(a), in<T>(b), out<T>(to), relu});
    });
  }
  void pack_weights(const float* from, Array to, const ConvolutionShape& shape) const override {
    with_type(to.type, [&]<typename T>(T) {
      launcher_.each(shape.weights(),
                     PackWeightsKernel<T>{from, out<T>(to), shape.group_in(), taps(shape)});
    });
  }
  void unpack_weights(ConstArray from, float* to, const ConvolutionShape& shape) const override {
    with_type(from.type, [&]<typename T>(T) {
      launcher_.each(shape.weights(),
                     UnpackWeightsKernel<T>{in<T>(from), to, shape.group_in(), taps(shape)});
    });
  }
  void flatten(ConstArray map, Array features, uint32_t area, Matrix per_sample) const override {
    with_types(map.type, features.type, [&]<typename From, typename To>(From, To) {
      launcher_.each(
          per_sample.size() * area,
          FlattenKernel<From, To>{in<From>(map), out<To>(features), area, per_sample.columns});
    });
  }
  void unflatten(ConstArray features, Array map, uint32_t area, Matrix per_sample,
                 bool add) const override {
    with_types(features.type, map.type, [&]<typename From, typename To>(From, To) {
      launcher_.each(per_sample.size() * area,
                     UnflattenKernel<From, To>{in<From>(features), out<To>(map), area,
                                               per_sample.columns, add});
    });
  }
  void max_pool(ConstArray x, Array y, uint8_t* taps, const Window& window) const override {
    with_type(y.type, [&]<typename T>(T) {
      launcher_.each(window.outputs(), MaxPoolKernel<T>{in<T>(x), out<T>(y), taps, window});
    });
  }
  void max_pool_backward(ConstArray dy, const uint8_t* taps, Array dx, bool add,
                         const Window& window) const override {
    with_type(dx.type, [&]<typename T>(T) {
      launcher_.each(window.inputs(),
                     MaxPoolBackwardKernel<T>{in<T>(dy), taps, out<T>(dx), add, window});
    });
  }
  void average_pool(ConstArray x, Array y, const Window& window) const override {
    with_types(x.type, y.type, [&]<typename From, typename To>(From, To) {
      launcher_.each(window.outputs(),
                     AveragePoolKernel<From, To>{in<From>(x), out<To>(y), window});
    });
  }
  void average_pool_backward(ConstArray dy, Array dx, bool add,
                             const Window& window) const override {
    with_types(dy.type, dx.type, [&]<typename From, typename To>(From, To) {
      launcher_.each(window.inputs(),
                     AveragePoolBackwardKernel<From, To>{in<From>(dy), out<To>(dx), add, window});
    });
  }
  void convolve(ConstArray x, ConstArray weights, Array y,
                const ConvolutionShape& shape) const override {
    with_type(shape.type, [&]<typename T>(T) {
      const uint32_t outputs = shape.samples * shape.out_channels *
                               static_cast<uint32_t>(shape.out_height * shape.out_width);
      launcher_.each(outputs, ConvolveKernel<T>{in<T>(x), in<T>(weights), out<T>(y), shape});
    });
  }
  void convolve_backward(ConstArray dy, ConstArray weights, Array dx, bool add,
                         const ConvolutionShape& shape) const override {
    with_type(shape.type, [&]<typename T>(T) {
      const uint32_t inputs = shape.samples * shape.in_channels *
                              static_cast<uint32_t>(shape.in_height * shape.in_width);
      launcher_.each(inputs,
                     ConvolveBackwardKernel<T>{in<T>(dy), in<T>(weights), out<T>(dx), add, shape});
    });
  }
  void convolve_weights(ConstArray x, ConstArray dy, float* gradient,
                        const ConvolutionShape& shape) const override {
    const Matrix size{shape.samples * static_cast<uint32_t>(shape.out_height * shape.out_width),
                      shape.out_channels};
    with_type(shape.type, [&]<typename T>(T) {
      for (int tap = 0; tap < shape.kernel * shape.kernel; ++tap) {
        for (uint32_t c = 0; c < shape.group_in(); ++c)
          launcher_.columns(size,
                            ConvolveWeightsKernel<T>{in<T>(x), in<T>(dy), gradient, shape, tap, c});
      }
    });
  }

 private:
  static uint32_t taps(const ConvolutionShape& shape) {
    return static_cast<uint32_t>(shape.kernel * shape.kernel);
  }
  const Launcher& launcher_;
};

template <typename Launcher>
class NormKernels : public virtual Kernels {
 public:
  explicit NormKernels(const Launcher& launcher) : launcher_(launcher) {}

  void activate(ConstArray x, const float* slopes, Array y, Matrix size) const override {
    with_type(y.type, [&]<typename T>(T) {
      launcher_.each(size.size(), ActivateKernel<T>{in<T>(x), slopes, out<T>(y), size.columns});
    });
  }
  void activate_backward(ConstArray x, ConstArray dy, const float* slopes, Array dx, bool add,
                         float* slopes_gradient, Matrix size) const override {
    with_type(dy.type, [&]<typename T>(T) {
      if (slopes != nullptr) {
        launcher_.columns(size, PreluBackwardKernel<T>{in<T>(x), in<T>(dy), slopes, out<T>(dx), add,
                                                       slopes_gradient, size.columns});
      } else if (dx.data != nullptr) {
        launcher_.each(size.size(), ReluBackwardKernel<T>{in<T>(x), in<T>(dy), out<T>(dx), add});
      }
    });
  }
  void measure(const NormMeasure& measure, Matrix size) const override {
    const Matrix group{size.rows / measure.groups, size.columns};
    with_type(measure.x.type, [&]<typename T>(T) {
      launcher_.grouped_columns(size, measure.groups, MeasureKernel<T>{measure, group});
    });
  }
  void finish_measure(const NormMeasure& measure, Matrix size) const override {
    launcher_.each(size.columns, FinishMeasureKernel{measure, size});
  }
  void prepare_norm(const float* averages, float epsilon, float* mean_inverse, uint32_t groups,
                    uint32_t channels) const override {
    launcher_.each(groups * channels, PrepareNormKernel{averages, epsilon, mean_inverse, channels});
  }
  void norm_forward(const NormForward& norm, Matrix size) const override {
    with_type(norm.y.type, [&]<typename T>(T) {
      launcher_.each(size.size(),
                     NormForwardKernel<T>{norm, size.columns, per_group(size, norm.groups)});
    });
  }
  void norm_backward(const NormBackward& norm, Matrix size) const override {
    const uint32_t rows = size.rows / norm.groups;
    const float share = 1.0f / static_cast<float>(rows);
    with_type(norm.dy.type, [&]<typename T>(T) {
      launcher_.grouped_columns(size, norm.groups, NormSumsKernel<T>{norm, size.columns});
      if (norm.dx.data == nullptr) return;
      launcher_.each(size.size(),
                     NormInputKernel<T>{norm, size.columns, per_group(size, norm.groups), share});
    });
  }

 private:
  static uint32_t per_group(Matrix size, uint32_t groups) {
    return groups == 1 ? 0 : size.size() / groups;
  }
  const Launcher& launcher_;
};

template <typename Launcher>
class FeatureKernels : public virtual Kernels {
 public:
  explicit FeatureKernels(const Launcher& launcher) : launcher_(launcher) {}

  void add_bias(Array y, const float* bias, bool relu, Matrix size) const override {
    with_type(y.type, [&]<typename T>(T) {
      launcher_.each(size.size(), BiasKernel<T>{out<T>(y), bias, relu, size.columns});
    });
  }
  void mask(ConstArray y, Array dy, float* sums, Matrix size) const override {
    with_type(dy.type, [&]<typename T>(T) {
      const ReluMask<T> mask{in<T>(y), out<T>(dy)};
      if (sums == nullptr) {
        launcher_.each(size.size(), mask);
      } else {
        launcher_.columns(size, MaskSumsKernel<T>{mask, sums, size.columns});
      }
    });
  }
  void sum_columns(ConstArray x, float* to, Matrix size) const override {
    with_type(x.type, [&]<typename T>(T) {
      launcher_.columns(size, SumColumnsKernel<T>{in<T>(x), to, size.columns});
    });
  }
  void dropout(ConstArray from, Array to, bool add, const DropoutDraw& draw, const uint64_t* slots,
               uint32_t area, Matrix per_sample) const override {
    with_type(to.type, [&]<typename T>(T) {
      launcher_.each(per_sample.size() * area, DropoutKernel<T>{in<T>(from), out<T>(to), add, draw,
                                                                slots, area, per_sample.columns});
    });
  }
  void unit_rows(ConstArray x, Array unit, float* inverse, Matrix size) const override {
    with_types(x.type, unit.type, [&]<typename From, typename To>(From, To) {
      launcher_.rows(size, UnitRowsKernel<From, To>{in<From>(x), out<To>(unit), inverse,
                                                    kLeastLength, size.columns});
    });
  }
  void unit_rows_backward(const float* d, ConstArray unit, const float* inverse, Array dx, bool add,
                          Matrix size) const override {
    with_types(unit.type, dx.type, [&]<typename U, typename To>(U, To) {
      launcher_.rows(size, UnitRowsBackwardKernel<U, To>{d, in<U>(unit), inverse, out<To>(dx), add,
                                                         size.columns});
    });
  }
  void margin_logits(const float* cosines, const int32_t* labels, float margin, float scale,
                     float* logits, Matrix size) const override {
    launcher_.each(size.size(),
                   MarginLogitsKernel{cosines, labels, margin, scale, logits, size.columns});
  }
  void margin_slopes(const float* cosines, const int32_t* labels, float margin, float scale,
                     const float* d_logits, Array d_cosines, Matrix size) const override {
    with_type(d_cosines.type, [&]<typename T>(T) {
      launcher_.each(size.size(), MarginSlopesKernel<T>{cosines, labels, margin, scale, d_logits,
                                                        out<T>(d_cosines), size.columns});
    });
  }

 private:
  const Launcher& launcher_;
};

template <typename Launcher>
class TrainingKernels : public virtual Kernels {
 public:
  explicit TrainingKernels(const Launcher& launcher) : launcher_(launcher) {}

  void softmax_loss(const float* logits, const int32_t* labels, float smoothing, float scale,
                    float* gradient, float* results, Matrix size) const override {
    launcher_.row_states(
        size, SoftmaxLossKernel{logits, labels, smoothing, scale, gradient, results, size.columns});
  }
  void add_scaled(const float* from, float factor, float* to, uint32_t count) const override {
    launcher_.each(count, ScaleAddKernel{from, factor, to});
  }
  void scale(float* values, float factor, uint32_t count) const override {
    launcher_.each(count, ScaleAddKernel{nullptr, factor, values});
  }
  void norm_of_array(const float* values, uint32_t count, double* to) const override {
    const Matrix size{(count + kNormColumns - 1) / kNormColumns, kNormColumns};
    launcher_.columns(size, NormOfArrayKernel{values, count, kNormColumns, to});
  }
  void prepare_sgd(const double* sums, SgdState* state) const override {
    launcher_.each(1, PrepareSgdKernel{sums, state});
  }
  void sgd(const SgdArrays& arrays, const SgdState* state, uint32_t count) const override {
    launcher_.each(count, SgdKernel{arrays, state});
  }
  void finish_sgd(const double* sums, SgdState* state) const override {
    launcher_.each(1, FinishSgdKernel{sums, state});
  }

 private:
  const Launcher& launcher_;
};

/// All of them. The launcher must outlive this.
template <typename Launcher>
class KernelsOver : public MapKernels<Launcher>,
                    public NormKernels<Launcher>,
                    public FeatureKernels<Launcher>,
                    public TrainingKernels<Launcher> {
 public:
  explicit KernelsOver(const Launcher& launcher)
      : MapKernels<Launcher>(launcher),
        NormKernels<Launcher>(launcher),
        FeatureKernels<Launcher>(launcher),
        TrainingKernels<Launcher>(launcher) {}
};

}  // namespace outrigger::nn::cuda
