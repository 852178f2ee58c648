#pragma once

// Norms and activations over a launcher, as kernels_over.inc.h.

#include <type_traits>

#include "nn/cuda/kernels/activation.inc.h"
#include "nn/cuda/kernels/elementwise.inc.h"
#include "nn/cuda/kernels/norm.inc.h"
#include "nn/cuda/kernels/types.inc.h"

namespace outrigger::nn::cuda {

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
    with_packs(dy.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      if (slopes != nullptr) {
        launcher_.columns(size, 1,
                          PreluBackwardKernel<T, N>{in<T>(x), in<T>(dy), slopes, out<T>(dx), add,
                                                    slopes_gradient, size.columns});
      } else if (dx.data != nullptr) {
        launcher_.each(size.size() / N,
                       ReluBackwardKernel<T, N>{in<T>(x), in<T>(dy), out<T>(dx), add});
      }
    });
  }
  void measure(const NormMeasure& measure, Matrix size) const override {
    const Matrix group{size.rows / measure.groups, size.columns};
    with_packs(measure.x.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      launcher_.columns(size, measure.groups, MeasureKernel<T, N>{measure, group});
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
    with_packs(norm.y.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      with_behind(norm.relu, false, norm.slopes, [&]<Behind kBehind>(IsBehind<kBehind>) {
        launcher_.rows_of_columns(size, norm.groups,
                                  NormForwardKernel<T, N, kBehind>{norm, size.columns});
      });
    });
  }
  void norm_backward(const NormBackward& norm, Matrix size) const override {
    with_packs(norm.dy.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      with_behind(norm.relu, norm.residual, norm.slopes, [&]<Behind kBehind>(IsBehind<kBehind>) {
        launcher_.columns(size, norm.groups, NormSumsKernel<T, N, kBehind>{norm, size.columns});
      });
    });
    if (norm.dx.data == nullptr) return;
    NormBackward input = norm;
    if (norm.residual_gradient.data != nullptr && !norm.add_residual) {
      // That is dy behind the activation, and all that was to be found out by it.
      input.dy = norm.residual_gradient;
      input.relu = false;
      input.slopes = nullptr;
    }
    const uint32_t rows = size.rows / norm.groups;
    const float share = 1.0f / static_cast<float>(rows);
    with_packs(norm.dy.type, size.columns, [&]<typename T, int N>(T, Width<N>) {
      with_behind(input.relu, input.residual, input.slopes, [&]<Behind kBehind>(IsBehind<kBehind>) {
        launcher_.rows_of_columns(size, norm.groups,
                                  NormInputKernel<T, N, kBehind>{input, size.columns, share});
      });
    });
  }

 private:
  template <Behind kBehind>
  using IsBehind = std::integral_constant<Behind, kBehind>;

  template <typename F>
  static void with_behind(bool relu, bool residual, const float* slopes, const F& f) {
    if (relu && residual) {
      f(IsBehind<Behind::kReluOfSum>());
    } else if (relu) {
      f(IsBehind<Behind::kRelu>());
    } else if (slopes != nullptr) {
      f(IsBehind<Behind::kPrelu>());
    } else {
      f(IsBehind<Behind::kNothing>());
    }
  }
  const Launcher& launcher_;
};

}  // namespace outrigger::nn::cuda
