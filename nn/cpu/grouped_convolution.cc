#include "nn/cpu/grouped_convolution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "nn/cpu/element_type.h"

namespace outrigger::nn::cpu {
namespace {

constexpr int64_t kMostKernel = 7;

/// The rows of a map that the kernel sees, as the row kernels read them: float32, in blocks of
/// channels, with the padding around them. Each row is converted once.
class BlockedRows {
 public:
  BlockedRows(const ConvolutionShape& s, const Kernels& kernels, std::byte* scratchpad)
      : s_(s), kernels_(kernels), floats_(reinterpret_cast<float*>(scratchpad)) {
    std::fill_n(floats_, row_floats(s), 0.0f);  // what lies beyond the edges
  }
  static int64_t width(const ConvolutionShape& s) { return s.in_width + 2 * s.padding; }
  static size_t bytes(const ConvolutionShape& s) {
    return static_cast<size_t>((s.kernel + 1) * row_floats(s)) * sizeof(float);
  }

  /// work(what it sees) for each row of outputs, of one map after the other.
  template <typename T, typename Work>
  void for_each_output_row(const T* map, int64_t maps, const Work& work) {
    for (int64_t i = 0; i < maps; ++i, map += s_.in_height * s_.in_width * s_.in_channels) {
      next_ = 0;
      for (int64_t y = 0; y < s_.out_height; ++y) work(seen_by(map, y));
    }
  }

 private:
  template <typename T>
  const float* const* seen_by(const T* map, int64_t y) {
    const int64_t first = y - s_.padding;
    for (int64_t row = first; row < first + s_.kernel; ++row) {
      const bool inside = row >= 0 && row < s_.in_height;
      if (inside && row >= next_) convert(map, row);
      rows_.at(static_cast<size_t>(row - first)) = inside ? slot(row) : floats_;
    }
    return rows_.data();
  }
  static int64_t row_floats(const ConvolutionShape& s) { return width(s) * s.in_channels; }
  float* slot(int64_t row) const { return floats_ + (1 + row % s_.kernel) * row_floats(s_); }
  template <typename T>
  void convert(const T* map, int64_t row) {
    kernels_.of<T>().block_channels(map + row * s_.in_width * s_.in_channels, s_.in_width,
                                    s_.in_channels, s_.padding, slot(row));
    next_ = row + 1;
  }

  const ConvolutionShape& s_;
  const Kernels& kernels_;
  float* const floats_;
  int64_t next_ = 0;  // the first row that is not there yet
  std::array<const float*, kMostKernel> rows_{};
};

/// Backward it reads the outputs' gradient and writes the inputs'.
ConvolutionShape as_read(ConvolutionShape s, ConvolutionPass pass) {
  if (pass == ConvolutionPass::kForward) return s;
  std::swap(s.in_height, s.out_height);
  std::swap(s.in_width, s.out_width);
  s.padding = s.kernel - 1 - s.padding;
  return s;
}

}  // namespace

bool is_grouped(const ConvolutionShape& s) {
  const int64_t group = group_width(s);
  // In float32 oneDNN's are faster for groups of one channel, but not over a whole map.
  const bool by_channel = group == 1 && (s.bfloat16 || s.out_height * s.out_width == 1);
  const bool narrow = by_channel || group == 2 || group == 4;
  return s.groups > 1 && s.in_channels == s.out_channels && narrow &&
         s.in_channels % kernels().lanes == 0 && s.kernel > 1 && s.kernel <= kMostKernel &&
         s.stride == 1 && s.padding < s.kernel;
}

GroupedConvolution::GroupedConvolution(const ConvolutionShape& shape, ConvolutionPass pass)
    : pass_(pass), shape_(as_read(shape, pass)) {}

size_t GroupedConvolution::weight_bytes() const {
  const int64_t floats = shape_.kernel * shape_.kernel * group_width(shape_) * shape_.out_channels;
  return static_cast<size_t>(floats) * sizeof(float);
}

size_t GroupedConvolution::scratchpad_bytes() const { return BlockedRows::bytes(shape_); }

// To {blocks of channels, kernel row, kernel column, channel of the group, lane}.
void GroupedConvolution::load(const float* plain, std::byte* packed) const {
  const int64_t area = shape_.kernel * shape_.kernel, group = group_width(shape_);
  const bool turned = pass_ == ConvolutionPass::kBackwardData;
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t first = 0; first < shape_.out_channels; first += kernels_->lanes) {
    for (int64_t tap = 0; tap < area; ++tap) {
      for (int64_t other = 0; other < group; ++other) {
        for (int64_t lane = 0; lane < kernels_->lanes; ++lane, ++to) {
          const int64_t channel = first + lane;
          // Backward a lane is an input channel, and reads the outputs of its group.
          const int64_t out = turned ? channel / group * group + other : channel;
          const int64_t in = turned ? channel % group : other;
          *to = plain[(out * group + in) * area + (turned ? area - 1 - tap : tap)];
        }
      }
    }
  }
}

void GroupedConvolution::execute(std::byte* scratchpad, const void* from, const std::byte* packed,
                                 const float* bias, void* to, int64_t samples) const {
  const ConvolutionShape& s = shape_;
  BlockedRows rows(s, *kernels_, scratchpad);
  with_type(s.bfloat16, [&](auto type) {
    using T = decltype(type);
    auto* y = static_cast<T*>(to);
    rows.for_each_output_row(static_cast<const T*>(from), samples, [&](const float* const* seen) {
      kernels_->of<T>().grouped_row({.rows = seen,
                                     .width = BlockedRows::width(s),
                                     .outputs = s.out_width,
                                     .channels = s.out_channels,
                                     .group = group_width(s),
                                     .kernel = s.kernel,
                                     .weights = reinterpret_cast<const float*>(packed),
                                     .bias = bias,
                                     .y = y});
      y += s.out_width * s.out_channels;
    });
  });
}

size_t GroupedWeightGradient::scratchpad_bytes() const { return BlockedRows::bytes(shape_); }

void GroupedWeightGradient::execute(std::byte* scratchpad, const void* x, const void* dy,
                                    float* gradient) const {
  const ConvolutionShape& s = shape_;
  BlockedRows rows(s, *kernels_, scratchpad);
  std::fill_n(gradient, s.kernel * s.kernel * group_width(s) * s.out_channels, 0.0f);
  with_type(s.bfloat16, [&](auto type) {
    using T = decltype(type);
    const auto* row = static_cast<const T*>(dy);
    rows.for_each_output_row(static_cast<const T*>(x), samples_, [&](const float* const* seen) {
      kernels_->of<T>().grouped_gradient({.rows = seen,
                                          .width = BlockedRows::width(s),
                                          .outputs = s.out_width,
                                          .channels = s.out_channels,
                                          .group = group_width(s),
                                          .kernel = s.kernel,
                                          .dy = row,
                                          .gradient = gradient});
      row += s.out_width * s.out_channels;
    });
  });
}

}  // namespace outrigger::nn::cpu
