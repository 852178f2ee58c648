#pragma once

// Kernels that compute each element by itself. A launcher's each(count, f) calls f(i) for every i
// below count.

#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/pack.h"
#include "nn/cuda/kernels/random.h"

namespace outrigger::nn::cuda {

template <typename T>
struct NormalizeKernel {
  const uint8_t* pixels;
  const float* mean_factor;
  T* out;
  uint32_t channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t c = i % channels;
    store(out + i, (static_cast<float>(pixels[i]) - mean_factor[c]) * mean_factor[channels + c]);
  }
};

template <typename T>
struct DequantiseKernel {
  const uint8_t* bytes;
  bool is_signed;
  const float* scales;
  T* out;
  uint32_t channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const int whole = is_signed ? static_cast<int8_t>(bytes[i]) : static_cast<int>(bytes[i]);
    const float scale = scales[i % channels];
    // A channel of NaN keeps its bits as float32; a GPU's products have others.
    store(out + i, scale != scale ? scale : static_cast<float>(whole) * scale);
  }
};

/// Where a kernel has a width N, i counts packs of so many elements.
template <typename From, typename To, int N>
struct ConvertKernel {
  const From* from;
  To* to;
  bool add;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    float values[N];
    load(from + i * N, values);
    save(to + i * N, values, add);
  }
};

template <typename T, int N>
struct AddKernel {
  const T* a;
  const T* b;
  T* out;
  bool relu;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    float sums[N], others[N];
    load(a + i * N, sums);
    load(b + i * N, others);
    for (int j = 0; j < N; ++j) {
      sums[j] += others[j];
      if (relu && sums[j] <= 0) sums[j] = 0;
    }
    save(out + i * N, sums);
  }
};

// i counts in {out, tap, in}, what cuDNN calls KRSC.
OUTRIGGER_BOTH inline uint32_t torch_weight(uint32_t i, uint32_t in, uint32_t taps) {
  const uint32_t c = i % in, tap = i / in % taps, o = i / in / taps;
  return (o * in + c) * taps + tap;
}

template <typename T>
struct PackWeightsKernel {
  const float* from;
  T* to;
  uint32_t in, taps;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    store(to + i, from[torch_weight(i, in, taps)]);
  }
};

template <typename T>
struct UnpackWeightsKernel {
  const T* from;
  float* to;
  uint32_t in, taps;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    to[torch_weight(i, in, taps)] = to_float(from[i]);
  }
};

// i counts in {N, area, C}; the other order is {N, C, area}.
OUTRIGGER_BOTH inline uint32_t torch_place(uint32_t i, uint32_t area, uint32_t channels) {
  const uint32_t c = i % channels, place = i / channels % area, n = i / channels / area;
  return (n * channels + c) * area + place;
}

template <typename From, typename To>
struct FlattenKernel {
  const From* map;
  To* features;
  uint32_t area, channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    store(features + torch_place(i, area, channels), to_float(map[i]));
  }
};

template <typename From, typename To>
struct UnflattenKernel {
  const From* features;
  To* map;
  uint32_t area, channels;
  bool add;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    store(map + i, to_float(features[torch_place(i, area, channels)]), add);
  }
};

template <typename T>
struct ActivateKernel {
  const T* x;
  const float* slopes;  // null: ReLU
  T* y;
  uint32_t channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const float value = to_float(x[i]);
    if (slopes == nullptr) {
      store(y + i, value <= 0 ? 0.0f : value);  // NaN passes, as in PyTorch
    } else {
      store(y + i, value > 0 ? value : value * slopes[i % channels]);
    }
  }
};

template <typename T, int N>
struct ReluBackwardKernel {
  const T* x;
  const T* dy;
  T* dx;
  bool add;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    float sign[N], gradient[N];
    load(x + i * N, sign);
    load(dy + i * N, gradient);
    for (int j = 0; j < N; ++j) gradient[j] = sign[j] <= 0 ? 0.0f : gradient[j];
    save(dx + i * N, gradient, add);
  }
};

template <typename T>
struct BiasKernel {
  T* y;
  const float* bias;
  bool relu;
  uint32_t columns;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const float sum = to_float(y[i]) + bias[i % columns];
    store(y + i, relu && sum <= 0 ? 0.0f : sum);
  }
};

template <typename T>
struct DropoutKernel {
  const T* from;
  T* to;
  bool add;
  DropoutDraw draw;
  const uint64_t* slots;
  uint32_t area, channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t per_sample = area * channels, n = i / per_sample;
    const uint32_t element = torch_place(i - n * per_sample, area, channels);
    store(to + i, to_float(from[i]) * dropout_factor(draw, slots[n], element), add);
  }
};

}  // namespace outrigger::nn::cuda
