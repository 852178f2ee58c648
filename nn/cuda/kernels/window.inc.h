#pragma once

// Pools. Backward kernels gather: each input place looks at the windows that
// cover it, so nothing is added by two threads and results are the same every time.

#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/pack.h"

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

/// N channels of a place each: i counts packs of them.
template <typename T, int N>
struct MaxPoolKernel {
  const T* x;
  T* y;
  uint8_t* taps;
  Window window;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const Window& w = window;
    const Place out = place_of(i, w.out_height, w.out_width, w.channels / N);
    float best[N] = {};
    Pack<uint8_t, N> best_tap = {};
    bool first = true;
    for (int tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
      const int row = out.y * w.stride - w.padding + tap / w.kernel_width;
      const int column = out.x * w.stride - w.padding + tap % w.kernel_width;
      if (row < 0 || row >= w.in_height || column < 0 || column >= w.in_width) continue;
      float values[N];
      load(x + index_of(out.n, row, column, w.in_height, w.in_width, w.channels, out.c * N),
           values);
      for (int j = 0; j < N; ++j) {
        if (!first && !(values[j] > best[j]) && values[j] == values[j]) continue;
        best[j] = values[j];
        best_tap.values[j] = static_cast<uint8_t>(tap);
      }
      first = false;
    }
    save(y + i * N, best);
    if (taps != nullptr) *reinterpret_cast<Pack<uint8_t, N>*>(taps + i * N) = best_tap;
  }
};

/// The first and last of the windows along one side that cover a place.
struct Covering {
  int first, last;
  OUTRIGGER_BOTH Covering(int place, int kernel, int stride, int padding, int windows) {
    const int begins_behind = place + padding - kernel;  // the last place whose window ends before
    first = begins_behind < 0 ? 0 : begins_behind / stride + 1;
    last = (place + padding) / stride;
    if (last >= windows) last = windows - 1;
  }
};

/// visit(tap, index of the output) for each window that covers an input place.
template <typename Visit>
OUTRIGGER_BOTH inline void for_each_window(const Window& w, const Place& in, const Visit& visit) {
  const Covering rows(in.y, w.kernel_height, w.stride, w.padding, w.out_height);
  const Covering columns(in.x, w.kernel_width, w.stride, w.padding, w.out_width);
  for (int y = rows.first; y <= rows.last; ++y) {
    for (int x = columns.first; x <= columns.last; ++x) {
      const int tap =
          (in.y + w.padding - y * w.stride) * w.kernel_width + in.x + w.padding - x * w.stride;
      visit(tap, index_of(in.n, y, x, w.out_height, w.out_width, w.channels, in.c));
    }
  }
}

template <typename T, int N>
struct MaxPoolBackwardKernel {
  const T* dy;
  const uint8_t* taps;
  T* dx;
  bool add;
  Window window;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    float sums[N] = {};
    Place in = place_of(i, window.in_height, window.in_width, window.channels / N);
    in.c *= N;
    for_each_window(window, in, [&](int tap, uint32_t out) {
      const auto came_from = read_pack<N>(taps + out);
      float gradient[N];
      load(dy + out, gradient);
      for (int j = 0; j < N; ++j) sums[j] += came_from.values[j] == tap ? gradient[j] : 0.0f;
    });
    save(dx + i * N, sums, add);
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

}  // namespace outrigger::nn::cuda
