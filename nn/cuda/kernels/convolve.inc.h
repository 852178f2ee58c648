#pragma once

// Plain convolutions, for those that cuDNN has none for. Each place gathers, so that results are
// the same every time.

#include "nn/cuda/kernels/columns.h"
#include "nn/cuda/kernels/window.inc.h"

namespace outrigger::nn::cuda {

template <typename T>
struct ConvolveKernel {
  const T* x;
  const T* weights;
  T* y;
  ConvolutionShape shape;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const ConvolutionShape& s = shape;
    const uint32_t in = s.group_in();
    const Place out = place_of(i, s.out_height, s.out_width, s.out_channels);
    const uint32_t first = out.c / s.group_out() * in;
    const T* taps = weights + out.c * static_cast<uint32_t>(s.kernel * s.kernel) * in;
    float sum = 0;
    for (int tap = 0; tap < s.kernel * s.kernel; ++tap, taps += in) {
      const int row = out.y * s.stride - s.padding + tap / s.kernel;
      const int column = out.x * s.stride - s.padding + tap % s.kernel;
      if (row < 0 || row >= s.in_height || column < 0 || column >= s.in_width) continue;
      const T* from =
          x + index_of(out.n, row, column, s.in_height, s.in_width, s.in_channels, first);
      for (uint32_t c = 0; c < in; ++c) sum += to_float(from[c]) * to_float(taps[c]);
    }
    store(y + i, sum);
  }
};

template <typename T>
struct ConvolveBackwardKernel {
  const T* dy;
  const T* weights;
  T* dx;
  bool add;
  ConvolutionShape shape;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const ConvolutionShape& s = shape;
    const uint32_t in_group = s.group_in(), out_group = s.group_out();
    const Place in = place_of(i, s.in_height, s.in_width, s.in_channels);
    const uint32_t first = in.c / in_group * out_group;
    const auto all_taps = static_cast<uint32_t>(s.kernel * s.kernel);
    float sum = 0;
    for (int tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const int row = in.y + s.padding - tap / s.kernel;
      const int column = in.x + s.padding - tap % s.kernel;
      if (row < 0 || column < 0 || row % s.stride != 0 || column % s.stride != 0) continue;
      const int y = row / s.stride, x = column / s.stride;
      if (y >= s.out_height || x >= s.out_width) continue;
      const T* from = dy + index_of(in.n, y, x, s.out_height, s.out_width, s.out_channels, first);
      const T* weight =
          weights + (first * all_taps + static_cast<uint32_t>(tap)) * in_group + in.c % in_group;
      for (uint32_t o = 0; o < out_group; ++o)
        sum += to_float(from[o]) * to_float(weight[o * all_taps * in_group]);
    }
    store(dx + i, sum, add);
  }
};

/// The weights of one place of the window and one input channel of each group: one column an output
/// channel, one row an output place.
template <typename T>
struct ConvolveWeightsKernel {
  static constexpr int kWidth = 1, kSums = 1;
  const T* x;
  const T* dy;
  float* gradient;
  ConvolutionShape shape;
  int tap;
  uint32_t channel;

  using Column = PlainColumn;
  OUTRIGGER_BOTH Column column(uint32_t, uint32_t o) const { return {o}; }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const ConvolutionShape& s = shape;
    const uint32_t i = row * s.out_channels + column.at;
    const Place out = place_of(i, s.out_height, s.out_width, s.out_channels);
    const int in_y = out.y * s.stride - s.padding + tap / s.kernel;
    const int in_x = out.x * s.stride - s.padding + tap % s.kernel;
    if (in_y < 0 || in_y >= s.in_height || in_x < 0 || in_x >= s.in_width) return;
    const uint32_t c = column.at / s.group_out() * s.group_in() + channel;
    const uint32_t at = index_of(out.n, in_y, in_x, s.in_height, s.in_width, s.in_channels, c);
    sums[0] += to_float(x[at]) * to_float(dy[i]);
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t o, const double* sums) const {
    const auto taps = static_cast<uint32_t>(shape.kernel * shape.kernel);
    gradient[(o * shape.group_in() + channel) * taps + static_cast<uint32_t>(tap)] =
        static_cast<float>(sums[0]);
  }
};

}  // namespace outrigger::nn::cuda
