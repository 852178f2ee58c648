#pragma once

// Pools and plain convolutions. Backward kernels gather: each input place looks at the windows that
// cover it, so nothing is added by two threads and results are the same every time.

#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {

/// Where element i of {N, height, width, C} lies.
struct Place {
  int n, y, x;
  uint32_t c;
};

OUTRIGGER_BOTH inline Place place_of(uint32_t i, int height, int width, uint32_t channels) {
  const uint32_t c = i % channels, place = i / channels;
  const auto w = static_cast<uint32_t>(width), h = static_cast<uint32_t>(height);
  return {static_cast<int>(place / w / h), static_cast<int>(place / w % h),
          static_cast<int>(place % w), c};
}

OUTRIGGER_BOTH inline uint32_t index_of(int n, int y, int x, int height, int width,
                                        uint32_t channels, uint32_t c) {
  return static_cast<uint32_t>((n * height + y) * width + x) * channels + c;
}

template <typename T>
struct MaxPoolKernel {
  const T* x;
  T* y;
  uint8_t* taps;
  Window window;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const Window& w = window;
    const Place out = place_of(i, w.out_height, w.out_width, w.channels);
    float best = 0;
    int best_tap = -1;
    for (int tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
      const int row = out.y * w.stride - w.padding + tap / w.kernel_width;
      const int column = out.x * w.stride - w.padding + tap % w.kernel_width;
      if (row < 0 || row >= w.in_height || column < 0 || column >= w.in_width) continue;
      const float value =
          to_float(x[index_of(out.n, row, column, w.in_height, w.in_width, w.channels, out.c)]);
      if (best_tap >= 0 && !(value > best) && value == value) continue;
      best = value;
      best_tap = tap;
    }
    store(y + i, best);
    if (taps != nullptr) taps[i] = static_cast<uint8_t>(best_tap);
  }
};

/// visit(tap, index of the output) for each window that covers an input place.
template <typename Visit>
OUTRIGGER_BOTH inline void for_each_window(const Window& w, const Place& in, const Visit& visit) {
  for (int tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
    const int row = in.y + w.padding - tap / w.kernel_width;
    const int column = in.x + w.padding - tap % w.kernel_width;
    if (row < 0 || column < 0 || row % w.stride != 0 || column % w.stride != 0) continue;
    const int y = row / w.stride, x = column / w.stride;
    if (y >= w.out_height || x >= w.out_width) continue;
    visit(tap, index_of(in.n, y, x, w.out_height, w.out_width, w.channels, in.c));
  }
}

template <typename T>
struct MaxPoolBackwardKernel {
  const T* dy;
  const uint8_t* taps;
  T* dx;
  bool add;
  Window window;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    float sum = 0;
    const Place in = place_of(i, window.in_height, window.in_width, window.channels);
    for_each_window(window, in, [&](int tap, uint32_t out) {
      if (taps[out] == tap) sum += to_float(dy[out]);
    });
    store(dx + i, sum, add);
  }
};

template <typename From, typename To>
struct AveragePoolKernel {
  const From* x;
  To* y;
  Window window;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const Window& w = window;
    const Place out = place_of(i, w.out_height, w.out_width, w.channels);
    float sum = 0;
    for (int tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
      const int row = out.y * w.stride - w.padding + tap / w.kernel_width;
      const int column = out.x * w.stride - w.padding + tap % w.kernel_width;
      if (row < 0 || row >= w.in_height || column < 0 || column >= w.in_width) continue;
      sum += to_float(x[index_of(out.n, row, column, w.in_height, w.in_width, w.channels, out.c)]);
    }
    store(y + i, sum / static_cast<float>(w.kernel_height * w.kernel_width));
  }
};

template <typename From, typename To>
struct AveragePoolBackwardKernel {
  const From* dy;
  To* dx;
  bool add;
  Window window;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    float sum = 0;
    const Place in = place_of(i, window.in_height, window.in_width, window.channels);
    for_each_window(window, in, [&](int, uint32_t out) { sum += to_float(dy[out]); });
    store(dx + i, sum / static_cast<float>(window.kernel_height * window.kernel_width), add);
  }
};

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
  const T* x;
  const T* dy;
  float* gradient;
  ConvolutionShape shape;
  int tap;
  uint32_t channel;
  OUTRIGGER_BOTH Sums<float> term(uint32_t row, uint32_t o) const {
    const ConvolutionShape& s = shape;
    const uint32_t i = row * s.out_channels + o;
    const Place out = place_of(i, s.out_height, s.out_width, s.out_channels);
    const int in_y = out.y * s.stride - s.padding + tap / s.kernel;
    const int in_x = out.x * s.stride - s.padding + tap % s.kernel;
    if (in_y < 0 || in_y >= s.in_height || in_x < 0 || in_x >= s.in_width) return {};
    const uint32_t c = o / s.group_out() * s.group_in() + channel;
    const uint32_t at = index_of(out.n, in_y, in_x, s.in_height, s.in_width, s.in_channels, c);
    return {to_float(x[at]) * to_float(dy[i]), 0, 0};
  }
  OUTRIGGER_BOTH void finish(uint32_t o, const Sums<double>& sums) const {
    const auto taps = static_cast<uint32_t>(shape.kernel * shape.kernel);
    gradient[(o * shape.group_in() + channel) * taps + static_cast<uint32_t>(tap)] =
        static_cast<float>(sums.a);
  }
};

}  // namespace outrigger::nn::cuda
