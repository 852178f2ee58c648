#pragma once

#include <cstdint>

#include "nn/cuda/kernels/scalar.h"

/// Every kernel of our own, as one interface: on a GPU they are launched on the engine's stream
/// (device/kernels.cu), in tests they run in loops on the host. Both compile the same arithmetic
/// (*.inc.h).
namespace outrigger::nn::cuda {

/// Memory of the device and how its elements are stored: kFloat32, kBFloat16 or kFloat16. Two
/// arrays of one call have one type, or one of them is float32.
struct Array {
  Stored type = Stored::kFloat32;
  void* data = nullptr;
};
struct ConstArray {
  Stored type = Stored::kFloat32;
  const void* data = nullptr;
  ConstArray() = default;
  ConstArray(Stored of, const void* at) : type(of), data(at) {}
  ConstArray(const Array& array) : type(array.type), data(array.data) {}
};

/// Rows of values side by side; of a map {N, H, W, C} a row is one place's channels. At most 2^31
/// elements, so that a GPU may count in 32 bits.
struct Matrix {
  uint32_t rows = 0;
  uint32_t columns = 0;
  OUTRIGGER_BOTH uint32_t size() const { return rows * columns; }
};

/// Where a window of each output place lies over an input {N, H, W, C}.
struct Window {
  uint32_t samples = 0, channels = 0;
  int in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0;
  OUTRIGGER_BOTH uint32_t outputs() const {
    return samples * channels * static_cast<uint32_t>(out_height * out_width);
  }
  OUTRIGGER_BOTH uint32_t inputs() const {
    return samples * channels * static_cast<uint32_t>(in_height * in_width);
  }
};

/// A convolution of maps {N, H, W, C}; weights {out, kernel, kernel, in / groups}.
struct ConvolutionShape {
  Stored type = Stored::kFloat32;  // of maps and weights; sums are float32
  uint32_t samples = 0, in_channels = 0, out_channels = 0, groups = 1;
  int in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int kernel = 1, stride = 1, padding = 0;
  OUTRIGGER_BOTH uint32_t group_in() const { return in_channels / groups; }
  OUTRIGGER_BOTH uint32_t group_out() const { return out_channels / groups; }
  OUTRIGGER_BOTH uint32_t weights() const {
    return out_channels * group_in() * static_cast<uint32_t>(kernel * kernel);
  }
  OUTRIGGER_BOTH bool depthwise() const {
    return groups > 1 && group_in() == 1 && group_out() == 1;
  }
  /// Limited by memory, which kernels of our own read once: depthwise ones, and those of two
  /// channels a group where a thread can go along rows (depthwise.inc.h).
  bool is_ours() const { return depthwise() || goes_along_rows(); }
  bool goes_along_rows() const {
    const bool small = groups > 1 && group_in() == group_out() && group_in() <= 2;
    const bool moves = stride == 1 || (stride == 2 && padding == 1);
    return small && kernel == 3 && moves && in_channels % (4 / group_in()) == 0;
  }
};

/// Batch norm of rows, and what is done with it in the same pass over memory:
/// y = activation(normalised * scale + shift + residual). Rows come in groups of equal size, one
/// behind another, each with statistics of its own.
struct NormForward {
  uint32_t groups = 1;
  ConstArray x;
  ConstArray residual;                  // data null: none
  const float* mean_inverse = nullptr;  // {groups, 2, C}: mean, 1 / deviation
  const float* scale_shift = nullptr;   // scale {C}, shift {C}
  bool relu = false;
  const float* slopes = nullptr;  // {C}: PReLU; null: none
  Array y;
};

struct NormBackward {
  uint32_t groups = 1;
  ConstArray x, y, dy;  // y only where there is a residual and a ReLU
  bool residual = false;
  Array residual_gradient;  // data null: nobody wants it
  bool add_residual = false;
  const float* mean_inverse = nullptr;
  const float* scale_shift = nullptr;
  bool relu = false;
  const float* slopes = nullptr;
  bool measured = true;   // statistics of this batch, so they have gradients too
  float* sums = nullptr;  // {groups, 2, C}: of gradient, and gradient times normalised; scratch
  float* scale_shift_gradient = nullptr;  // {2, C}; null: nobody wants it
  float* slopes_gradient = nullptr;
  Array dx;  // data null: nobody wants it
  bool add = false;
};

/// Where the statistics of batch norm go, and what is made of them.
struct NormMeasure {
  ConstArray x;
  uint32_t groups = 1;
  float epsilon = 0;
  float* statistics = nullptr;    // of each group mean {C} and biased variance {C}
  uint32_t statistics_apart = 0;  // from one group's to the next one's, in floats
  float* mean_inverse = nullptr;  // {groups, 2, C}
};

/// Names of dropout's random numbers (nn/dropout.h), ready for the device.
struct DropoutDraw {
  uint32_t key[2] = {0, 0};
  uint32_t layer = 0;
  uint32_t threshold = 0;
  float kept = 1;
};

/// Parameters in a row that the optimizer treats alike: up to `end`, from where the one before
/// ends.
struct OptimizerRange {
  uint32_t end = 0;
  float decay = 0;
  bool trains = true;
};
/// How many parameters share an entry of SgdArrays::first.
inline constexpr uint32_t kOptimizerBlock = 1024;

/// All on the device.
struct SgdArrays {
  const OptimizerRange* ranges = nullptr;
  const uint32_t* first = nullptr;  // of each block: the range that its first parameter is in
  const float* gradients = nullptr;
  float* momentum = nullptr;
  float* parameters = nullptr;
  float* averaged = nullptr;  // null: none are kept
};
struct SgdFactors {
  float mean = 1;    // of a sum of gradients
  float shrink = 1;  // by clipping
  float learning_rate = 0;
  float momentum = 0;
  bool nesterov = false;
  float average_decay = 0;
};

/// A step of the optimizer, on the device: what it is told, and what came of it.
struct SgdState {
  SgdFactors factors;        // shrink is found there
  double clip_norm = 0;      // 0: no limit
  double other_squares = 0;  // of mean gradients elsewhere, which the norm has too
  double gradient_norm = 0;  // of the mean, before clipping
  double zeros = 0;          // of the weights behind the step; no number where one is none
};

/// In how many sums norm_of_array leaves an array.
inline constexpr uint32_t kNormColumns = 1024;

/// Calls return at once; work is done in order. `add` adds to what the target holds.
class Kernels {
 public:
  virtual ~Kernels() = default;

  /// out = (pixel - mean255) * factor, both {C}, one after the other in `mean_factor`.
  virtual void normalize(const uint8_t* pixels, const float* mean_factor, Array out,
                         Matrix size) const = 0;
  /// out = byte * scale of its column: activations as links bring them in int8 (WireFormat::kInt8).
  virtual void dequantise(const uint8_t* bytes, bool is_signed, const float* scales, Array out,
                          Matrix size) const = 0;
  /// Copies between types.
  virtual void convert(ConstArray from, Array to, uint32_t count, bool add) const = 0;
  /// out = a + b, with a ReLU behind it where asked for.
  virtual void add(ConstArray a, ConstArray b, Array out, uint32_t count, bool relu) const = 0;
  /// PyTorch's weights {out, in, k, k} to {out, k, k, in} and back; back is always float32.
  virtual void pack_weights(const float* from, Array to, const ConvolutionShape& shape) const = 0;
  virtual void unpack_weights(ConstArray from, float* to, const ConvolutionShape& shape) const = 0;
  /// {N, H * W, C} to {N, C * H * W} and back.
  virtual void flatten(ConstArray map, Array features, uint32_t area, Matrix per_sample) const = 0;
  virtual void unflatten(ConstArray features, Array map, uint32_t area, Matrix per_sample,
                         bool add) const = 0;

  /// ReLU, or PReLU with `slopes`.
  virtual void activate(ConstArray x, const float* slopes, Array y, Matrix size) const = 0;
  /// dx may be null data; `slopes_gradient` too. A ReLU may be given its y as x.
  virtual void activate_backward(ConstArray x, ConstArray dy, const float* slopes, Array dx,
                                 bool add, float* slopes_gradient, Matrix size) const = 0;

  virtual void measure(const NormMeasure& measure, Matrix size) const = 0;
  /// The same of one group whose sums, and sums of squares, are where mean_inverse goes; x is not
  /// read.
  virtual void finish_measure(const NormMeasure& measure, Matrix size) const = 0;
  /// mean_inverse of all groups from running averages {2, C}.
  virtual void prepare_norm(const float* averages, float epsilon, float* mean_inverse,
                            uint32_t groups, uint32_t channels) const = 0;
  virtual void norm_forward(const NormForward& norm, Matrix size) const = 0;
  virtual void norm_backward(const NormBackward& norm, Matrix size) const = 0;

  /// `taps`: which place of its window each output is, for backward; null in inference.
  virtual void max_pool(ConstArray x, Array y, uint8_t* taps, const Window& window) const = 0;
  virtual void max_pool_backward(ConstArray dy, const uint8_t* taps, Array dx, bool add,
                                 const Window& window) const = 0;
  /// Padding counts as zeros in the mean.
  virtual void average_pool(ConstArray x, Array y, const Window& window) const = 0;
  virtual void average_pool_backward(ConstArray dy, Array dx, bool add,
                                     const Window& window) const = 0;

  /// With a ReLU behind it where asked for.
  virtual void add_bias(Array y, const float* bias, bool relu, Matrix size) const = 0;
  /// dy = 0 where a ReLU's y is. sums[c] = what is left of column c, unless nobody wants it (null).
  virtual void mask(ConstArray y, Array dy, float* sums, Matrix size) const = 0;
  /// out[c] = sum of column c.
  virtual void sum_columns(ConstArray x, float* out, Matrix size) const = 0;

  /// Forward and backward alike: to = from * factor.
  virtual void dropout(ConstArray from, Array to, bool add, const DropoutDraw& draw,
                       const uint64_t* slots, uint32_t area, Matrix per_sample) const = 0;

  /// Convolutions where cuDNN has none, and those of small groups.
  virtual void convolve(ConstArray x, ConstArray weights, Array y,
                        const ConvolutionShape& shape) const = 0;
  virtual void convolve_backward(ConstArray dy, ConstArray weights, Array dx, bool add,
                                 const ConvolutionShape& shape) const = 0;
  /// Into PyTorch's layout {out, in, k, k}.
  virtual void convolve_weights(ConstArray x, ConstArray dy, float* gradient,
                                const ConvolutionShape& shape) const = 0;

  /// Rows of length 1, and 1 / length of each (kLeastLength at least).
  virtual void unit_rows(ConstArray x, Array unit, float* inverse, Matrix size) const = 0;
  /// The gradient of a row from that of its unit row: (d - (d . unit) unit) * inverse.
  virtual void unit_rows_backward(const float* d, ConstArray unit, const float* inverse, Array dx,
                                  bool add, Matrix size) const = 0;
  /// ArcFace's logits from cosines; `labels` null: no margin.
  virtual void margin_logits(const float* cosines, const int32_t* labels, float margin, float scale,
                             float* logits, Matrix size) const = 0;
  /// d loss / d cosine.
  virtual void margin_slopes(const float* cosines, const int32_t* labels, float margin, float scale,
                             const float* d_logits, Array d_cosines, Matrix size) const = 0;

  /// As softmax_cross_entropy (nn/loss.h); gradient times `scale`. results {rows, 2}: the loss, and
  /// 1 where the largest logit is the label's, else 0.
  virtual void softmax_loss(const float* logits, const int32_t* labels, float smoothing,
                            float scale, float* gradient, float* results, Matrix size) const = 0;
  /// to += from * factor.
  virtual void add_scaled(const float* from, float factor, float* to, uint32_t count) const = 0;
  virtual void scale(float* values, float factor, uint32_t count) const = 0;
  /// Sums that the host adds up: out {2, kNormColumns} of squares, and of zeros, where a value that
  /// is not finite gives NaN.
  virtual void norm_of_array(const float* values, uint32_t count, double* out) const = 0;
  /// From what norm_of_array left of the gradients: the norm, and by how much it is shrunk.
  virtual void prepare_sgd(const double* sums, SgdState* state) const = 0;
  /// One step of the optimizer over all parameters; nothing where the norm is not finite.
  virtual void sgd(const SgdArrays& arrays, const SgdState* state, uint32_t count) const = 0;
  /// From what norm_of_array left of the weights.
  virtual void finish_sgd(const double* sums, SgdState* state) const = 0;
};

}  // namespace outrigger::nn::cuda
