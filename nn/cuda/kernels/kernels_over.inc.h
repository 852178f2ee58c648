#pragma once

// Kernels over a launcher: where loops run (a GPU, or the host in tests). What a launcher has:
//   each(count, f), columns(size, groups, f), rows_of_columns(size, groups, f), rows(size, f),
//   row_states(size, f), as told in columns.h and at the kernels that use them.

#include "nn/angular_margin.h"
#include "nn/cuda/kernels/convolutions_over.inc.h"
#include "nn/cuda/kernels/elementwise.inc.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/norms_over.inc.h"
#include "nn/cuda/kernels/rows.inc.h"
#include "nn/cuda/kernels/training.inc.h"
#include "nn/cuda/kernels/types.inc.h"
#include "nn/cuda/kernels/window.inc.h"

namespace outrigger::nn::cuda {

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
      constexpr int kWidth = kPackWidth<std::conditional_t<sizeof(From) == 4, From, To>>;
      if (packs_into(count, kWidth) && begins_packs<From, kWidth>(from) &&
          begins_packs<To, kWidth>(to)) {
        launcher_.each(count / kWidth,
                       ConvertKernel<From, To, kWidth>{in<From>(from), out<To>(to), add});
      } else {
        launcher_.each(count, ConvertKernel<From, To, 1>{in<From>(from), out<To>(to), add});
      }
    });
  }
  void add(ConstArray a, ConstArray b, Array to, uint32_t count, bool relu) const override {
    with_packs(to.type, count, [&]<typename T, int N>(T, Width<N>) {
      launcher_.each(count / N, AddKernel<T, N>{in<T>(a), in<T>(b), out<T>(to), relu});
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
    with_packs(y.type, window.channels, [&]<typename T, int N>(T, Width<N>) {
      launcher_.each(window.outputs() / N, MaxPoolKernel<T, N>{in<T>(x), out<T>(y), taps, window});
    });
  }
  void max_pool_backward(ConstArray dy, const uint8_t* taps, Array dx, bool add,
                         const Window& window) const override {
    with_packs(dx.type, window.channels, [&]<typename T, int N>(T, Width<N>) {
      launcher_.each(window.inputs() / N,
                     MaxPoolBackwardKernel<T, N>{in<T>(dy), taps, out<T>(dx), add, window});
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

 private:
  static uint32_t taps(const ConvolutionShape& shape) {
    return static_cast<uint32_t>(shape.kernel * shape.kernel);
  }
  /// What is converted may be a part of an array.
  template <typename T, int N>
  static bool begins_packs(const ConstArray& array) {
    return reinterpret_cast<uintptr_t>(array.data) % alignof(Pack<T, N>) == 0;
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
    with_packs(dy.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      if (sums == nullptr) {
        launcher_.each(size.size() / N,
                       ReluBackwardKernel<T, N>{in<T>(y), out<T>(dy), out<T>(dy), false});
      } else {
        launcher_.columns(
            size, 1, MaskSumsKernel<T, N>{in<T>(y), out<T>(dy), out<T>(dy), sums, size.columns});
      }
    });
  }
  void sum_columns(ConstArray x, float* to, Matrix size) const override {
    with_packs(x.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      launcher_.columns(size, 1,
                        MaskSumsKernel<T, N>{nullptr, in<T>(x), nullptr, to, size.columns});
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
    launcher_.columns(size, 1, NormOfArrayKernel{values, count, kNormColumns, to});
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
                    public ConvolutionKernels<Launcher>,
                    public NormKernels<Launcher>,
                    public FeatureKernels<Launcher>,
                    public TrainingKernels<Launcher> {
 public:
  explicit KernelsOver(const Launcher& launcher)
      : MapKernels<Launcher>(launcher),
        ConvolutionKernels<Launcher>(launcher),
        NormKernels<Launcher>(launcher),
        FeatureKernels<Launcher>(launcher),
        TrainingKernels<Launcher>(launcher) {}
};

}  // namespace outrigger::nn::cuda
