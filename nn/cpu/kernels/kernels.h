#pragma once

#include <cstdint>

/// Loops over channels-last activations that oneDNN has not, not fused, or not as fast. Each is a
/// pure function on one thread.
///
/// `count` consecutive values start at channel 0. Coefficients and sums of a channel are repeated
/// over a *period*: the least multiple of both the number of channels and 16, so that a loop may
/// take up to 16 values at a time whatever the number of channels. bfloat16 values are their 16
/// bits (uint16_t).
namespace outrigger::nn::cpu {

enum class Activation : uint8_t { kNone, kRelu, kPrelu };

/// y = activation((x - mean) * scale + shift + other)
template <typename T>
struct NormForward {
  const T* x;
  const T* other;  // may be null
  T* y;
  const float* mean;  // {period}, like the other coefficients
  const float* scale;
  const float* shift;
  const float* slope;  // of kPrelu
  int64_t count;
  int64_t period;
  Activation activation;
};

/// What reaches the norm's output is z = (gradient + gradient2) * activation'. Sums over the
/// values, per place of the period: sums[0] of z, sums[1] of z * (x - mean), and for kPrelu sums[2]
/// of (gradient + gradient2) * u where u <= 0, u being what entered the activation. kRelu: `y`
/// where given decides (y > 0), else u.
template <typename T>
struct NormReduce {
  const T* x;
  const T* y;
  const T* gradient;
  const T* gradient2;  // may be null
  T* z;                // written where not null
  const float* mean;
  const float* scale;
  const float* shift;
  const float* slope;
  float* sums;  // {3, period}
  int64_t count;
  int64_t period;
  Activation activation;
};

/// dx = factor * z + (x - mean) * by_distance + constant, z as in NormReduce (one gradient; kRelu
/// decides by u).
template <typename T>
struct NormBackward {
  const T* x;
  const T* gradient;
  T* dx;
  const float* mean;
  const float* scale;
  const float* shift;
  const float* slope;
  const float* factor;
  const float* by_distance;
  const float* constant;
  int64_t count;
  int64_t period;
  Activation activation;
};

/// One sample's map {height, width, channels} under a window.
struct Window {
  int64_t in_height, in_width;
  int64_t out_height, out_width;
  int64_t channels;
  int64_t kernel, stride, padding;
};

/// A row of outputs of a convolution of stride 1 in groups of 1, 2 or 4 channels in and as many
/// out. Of channels there are whole vectors (Kernels::lanes).
template <typename T>
struct GroupedRow {
  const float* const* rows;  // `kernel` of them: {channels / lanes, width, lanes}
  int64_t width;             // places, the padding's among them
  int64_t outputs, channels, group, kernel;
  const float* weights;  // {channels / lanes, kernel row, kernel column, group, lanes}
  const float* bias;     // {channels}; may be null
  T* y;                  // {outputs, channels}
};

/// What such a row adds to the gradient of the weights.
template <typename T>
struct GroupedGradient {
  const float* const* rows;
  int64_t width;
  int64_t outputs, channels, group, kernel;
  const T* dy;      // {outputs, channels}
  float* gradient;  // {kernel row, kernel column, group, channels}
};

template <typename T>
struct TypedKernels {
  /// partial {3, period}: the first values met (or 0), sums of x - first, sums of (x - first)^2.
  void (*norm_statistics)(const T* x, int64_t count, int64_t period, float* partial);
  void (*norm_forward)(const NormForward<T>& arguments);
  void (*norm_reduce)(const NormReduce<T>& arguments);
  void (*norm_backward)(const NormBackward<T>& arguments);

  /// y = x > 0 ? x : 0 (NaN stays); dx = y > 0 ? dy : 0.
  void (*relu_forward)(const T* x, T* y, int64_t count);
  void (*relu_backward)(const T* y, const T* dy, T* dx, int64_t count);
  void (*prelu_forward)(const T* x, const float* slope, T* y, int64_t count, int64_t period);
  /// dx may be null; slope_sums {period} of x * dy where x <= 0.
  void (*prelu_backward)(const T* x, const float* slope, const T* dy, T* dx, float* slope_sums,
                         int64_t count, int64_t period);
  void (*add)(const T* a, const T* b, T* sum, int64_t count);
  /// sums {period} of x.
  void (*column_sums)(const T* x, int64_t count, int64_t period, float* sums);
  /// y = (pixel - mean) * scale with coefficients {period}.
  void (*normalize)(const uint8_t* pixels, const float* mean, const float* scale, T* y,
                    int64_t count, int64_t period);

  /// `places`: for each output the number (row * kernel + column) of the largest value in its
  /// window; the first of equals wins, a NaN over all.
  void (*max_pool_forward)(const Window& window, const T* x, T* y, uint8_t* places);
  void (*max_pool_backward)(const Window& window, const uint8_t* places, const T* dy, T* dx);
  /// Means over the whole window, padding counting as zeros.
  void (*average_pool_forward)(const Window& window, const T* x, T* y);
  void (*average_pool_backward)(const Window& window, const T* dy, T* dx);
  /// x {places, channels} to y {channels} in float32, and back.
  void (*global_average_forward)(const T* x, int64_t places, int64_t channels, float* y);
  void (*global_average_backward)(const float* dy, int64_t places, int64_t channels, T* dx);
  /// x {places, channels} to y {channels, places} in float32, and back.
  void (*flatten_forward)(const T* x, int64_t places, int64_t channels, float* y);
  void (*flatten_backward)(const float* dy, int64_t places, int64_t channels, T* dx);

  void (*to_float)(const T* from, float* to, int64_t count);
  void (*from_float)(const float* from, T* to, int64_t count);

  /// x {places, channels} to {channels / lanes, padding + places + padding, lanes}, with zeros
  /// around.
  void (*block_channels)(const T* x, int64_t places, int64_t channels, int64_t padding,
                         float* blocked);
  void (*grouped_row)(const GroupedRow<T>& arguments);
  void (*grouped_gradient)(const GroupedGradient<T>& arguments);
};

/// Samples' maps {height, width, channels}, one behind the other, under 3 x 3 windows with a
/// padding of 1, cut into tiles of 2 x 2 outputs: row by row, sample by sample. What a tile at the
/// right or lower edge has too much counts as zero, or is left out.
struct WinogradMap {
  int64_t height, width, channels;
};

/// 16 planes, one for each point of the transform, of tiles by channels. Channel c of tile t in
/// plane p is data[p * point + c / width * panel + t * width + c % width].
struct WinogradPlanes {
  float* data;
  int64_t point, panel, width;
};

/// result {rows, columns} = start + the sum over `outer` of a {rows, inner} * b {inner, columns},
/// in that order. With o of `outer` and k of `inner`, a's value (i, k) lies at
/// i * a_row + k * a_step + o * a_jump, b's row at (o * inner + k) * b_step.
struct Product {
  const float* a;
  int64_t a_row, a_step, a_jump = 0;
  const float* b;
  int64_t b_step;
  float* result;
  int64_t result_row;
  int64_t rows, inner, outer = 1;
  int64_t columns;               // at most Kernels::panel
  const float* start = nullptr;  // {columns}; null: zeros
  bool add = false;              // to the result
};

/// row[i * step + j] += runs[i * run_row + j] for each i of `count` and j of `run`. Before and
/// behind each run there are Kernels::lanes zeros, behind the row's `width` values as many that
/// are written as they were.
struct OverlapAdd {
  const float* runs;
  int64_t run_row, run, count;
  float* row;
  int64_t step, width;
};

/// A convolution of 3 x 3 in the 16 points of F(2 x 2, 3 x 3) (winograd.inc.h). Channels, and the
/// width of planes, are multiples of Kernels::panel.
struct WinogradKernels {
  /// Tiles `first` to `first` + `count` of x, or of the gradient at the output, into planes whose
  /// tile 0 is `first`.
  void (*input)(const WinogradMap& map, const float* x, int64_t first, int64_t count,
                const WinogradPlanes& planes);
  void (*gradient)(const WinogradMap& map, const float* dy, int64_t first, int64_t count,
                   const WinogradPlanes& planes);
  /// From planes to y; `bias` may be null.
  void (*output)(const WinogradMap& map, const WinogradPlanes& planes, int64_t first, int64_t count,
                 const float* bias, float* y);
  /// taps {3, 3, panel} to 16 points, `point` floats from one to the next.
  void (*weights)(const float* taps, float* points, int64_t point);
  /// 16 points of `count` weights' gradients to nine taps of as many, added where wanted.
  void (*weight_gradient)(const float* points, int64_t point, int64_t count, bool add, float* taps,
                          int64_t tap);
};

struct Kernels {
  TypedKernels<float> float32;
  TypedKernels<uint16_t> bfloat16;
  WinogradKernels winograd;
  int64_t panel;  // columns that `product` computes together, a multiple of `lanes`
  int64_t lanes;  // of a register
  void (*product)(const Product& arguments);
  void (*overlap_add)(const OverlapAdd& arguments);
  void (*multiply)(const float* a, const float* b, float* product, int64_t count);
  /// sums[i] += values[i]
  void (*accumulate)(const float* values, float* sums, int64_t count);
  /// The sum of a[i] * b[i].
  float (*dot)(const float* a, const float* b, int64_t count);
  /// to = from * factor
  void (*scale)(const float* from, float factor, float* to, int64_t count);

  template <typename T>
  const TypedKernels<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return float32;
    } else {
      return bfloat16;
    }
  }
};

/// Those compiled for the instruction set in force, which is settled thereby (instruction_set.h).
const Kernels& kernels();

}  // namespace outrigger::nn::cpu
