#include "nn/cpu/narrow_convolution.h"

#include <algorithm>

namespace outrigger::nn::cpu {
namespace {

constexpr size_t kFloatSize = sizeof(float);
// Of dy that a weight gradient's products read once for each of the kernel's rows and columns: a
// core's first cache holds it.
constexpr int64_t kGradientBytes = 16 * 1024;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// What a row of the kernel sees.
int64_t run_of(const ConvolutionShape& s) { return s.kernel * s.in_channels; }

// work(first column, columns), a panel at a time.
template <typename Work>
void for_each_panel(int64_t panel, int64_t columns, const Work& work) {
  for (int64_t column = 0; column < columns; column += panel)
    work(column, std::min(panel, columns - column));
}

}  // namespace

bool is_narrow(const ConvolutionShape& s) {
  constexpr int64_t kMostChannels = 8;
  return !s.bfloat16 && s.groups == 1 && s.kernel > 1 && s.in_channels <= kMostChannels;
}

PaddedMap::PaddedMap(const ConvolutionShape& s)
    : height_(s.in_height),
      width_(s.in_width * s.in_channels),
      row_((s.in_width + 2 * s.padding) * s.in_channels),
      border_rows_(s.padding),
      border_(s.padding * s.in_channels),
      floats_((s.in_height + 2 * s.padding) * row_ + kernels().lanes) {}

const float* PaddedMap::pad(const float* map, float* to) const {
  if (border_rows_ == 0) return map;
  std::fill_n(to, border_rows_ * row_, 0.0f);
  float* at = to + border_rows_ * row_;
  for (int64_t y = 0; y < height_; ++y, at += row_, map += width_) {
    std::fill_n(at, border_, 0.0f);
    std::copy_n(map, width_, at + border_);
    std::fill_n(at + border_ + width_, border_, 0.0f);
  }
  std::fill_n(at, border_rows_ * row_, 0.0f);
  return to;
}

void PaddedMap::strip(const float* padded, float* map) const {
  const float* from = padded + border_rows_ * row_ + border_;
  for (int64_t y = 0; y < height_; ++y) std::copy_n(from + y * row_, width_, map + y * width_);
}

NarrowForward::NarrowForward(const ConvolutionShape& shape) : shape_(shape), map_(shape) {}

size_t NarrowForward::weight_bytes() const {
  const int64_t columns = round_up(shape_.out_channels, kernels_->panel);
  return static_cast<size_t>(shape_.kernel * run_of(shape_) * columns) * kFloatSize;
}

size_t NarrowForward::scratchpad_bytes() const {
  return static_cast<size_t>(map_.floats()) * kFloatSize;
}

// To {panels of out, kernel row, kernel column, in, panel}.
void NarrowForward::load(const float* plain, std::byte* packed) const {
  const int64_t panel = kernels_->panel, area = shape_.kernel * shape_.kernel;
  auto* to = reinterpret_cast<float*>(packed);
  for_each_panel(kernels_->panel, shape_.out_channels, [&](int64_t first, int64_t columns) {
    for (int64_t tap = 0; tap < area; ++tap) {
      for (int64_t in = 0; in < shape_.in_channels; ++in, to += panel) {
        for (int64_t lane = 0; lane < panel; ++lane) {
          const int64_t at = ((first + lane) * shape_.in_channels + in) * area + tap;
          to[lane] = lane < columns ? plain[at] : 0.0f;
        }
      }
    }
  });
}

void NarrowForward::execute(std::byte* scratchpad, const void* from, const std::byte* packed,
                            const float* bias, void* to, int64_t samples) const {
  const ConvolutionShape& s = shape_;
  const auto* map = static_cast<const float*>(from);
  auto* result = static_cast<float*>(to);
  const int64_t terms = s.kernel * run_of(s), out_row = s.out_width * s.out_channels;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const float* x = map_.pad(map, reinterpret_cast<float*>(scratchpad));
    for (int64_t y = 0; y < s.out_height; ++y, x += s.stride * map_.row(), result += out_row) {
      for_each_panel(kernels_->panel, s.out_channels, [&](int64_t first, int64_t columns) {
        kernels_->product({.a = x,
                           .a_row = s.stride * s.in_channels,
                           .a_step = 1,
                           .a_jump = map_.row(),
                           .b = reinterpret_cast<const float*>(packed) + first * terms,
                           .b_step = kernels_->panel,
                           .result = result + first,
                           .result_row = s.out_channels,
                           .rows = s.out_width,
                           .inner = run_of(s),
                           .outer = s.kernel,
                           .columns = columns,
                           .start = bias != nullptr ? bias + first : nullptr});
      });
    }
    map += s.in_height * s.in_width * s.in_channels;
  }
}

NarrowBackwardData::NarrowBackwardData(const ConvolutionShape& shape)
    : shape_(shape),
      map_(shape),
      run_row_(round_up(run_of(shape), kernels_->lanes) + 2 * kernels_->lanes) {}

size_t NarrowBackwardData::weight_bytes() const {
  const int64_t columns = round_up(run_of(shape_), kernels_->panel);
  return static_cast<size_t>(shape_.kernel * shape_.out_channels * columns) * kFloatSize;
}

size_t NarrowBackwardData::scratchpad_bytes() const {
  return static_cast<size_t>(map_.floats() + run_floats()) * kFloatSize;
}

int64_t NarrowBackwardData::run_floats() const {
  return shape_.kernel * shape_.out_width * run_row_;
}

// To {kernel row, panels of {kernel column, in}, out, panel}.
void NarrowBackwardData::load(const float* plain, std::byte* packed) const {
  const int64_t panel = kernels_->panel, area = shape_.kernel * shape_.kernel;
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t row = 0; row < shape_.kernel; ++row) {
    for_each_panel(kernels_->panel, run_of(shape_), [&](int64_t first, int64_t columns) {
      for (int64_t out = 0; out < shape_.out_channels; ++out, to += panel) {
        for (int64_t lane = 0; lane < panel; ++lane) {
          const int64_t column = (first + lane) / shape_.in_channels;
          const int64_t in = (first + lane) % shape_.in_channels;
          const int64_t at = (out * shape_.in_channels + in) * area + row * shape_.kernel + column;
          to[lane] = lane < columns ? plain[at] : 0.0f;
        }
      }
    });
  }
}

void NarrowBackwardData::execute(std::byte* scratchpad, const void* from, const std::byte* packed,
                                 const float*, void* to, int64_t samples) const {
  const ConvolutionShape& s = shape_;
  const auto* dy = static_cast<const float*>(from);
  auto* map = static_cast<float*>(to);
  auto* dx = reinterpret_cast<float*>(scratchpad);
  float* runs = dx + map_.floats();
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::fill_n(dx, map_.floats() + run_floats(), 0.0f);
    for (int64_t y = 0; y < s.out_height; ++y) {
      multiply(dy, reinterpret_cast<const float*>(packed), runs + kernels_->lanes);
      for (int64_t row = 0; row < s.kernel; ++row) {
        kernels_->overlap_add({.runs = runs + kernels_->lanes + row * s.out_width * run_row_,
                               .run_row = run_row_,
                               .run = run_of(s),
                               .count = s.out_width,
                               .row = dx + (y * s.stride + row) * map_.row(),
                               .step = s.stride * s.in_channels,
                               .width = map_.row()});
      }
      dy += s.out_width * s.out_channels;
    }
    map_.strip(dx, map);
    map += s.in_height * s.in_width * s.in_channels;
  }
}

// What each place of a row of dy adds to each row that it saw, {kernel row, place, kernel column,
// in}. A vector's columns behind the kernel's have weights of zero.
void NarrowBackwardData::multiply(const float* dy, const float* weights, float* runs) const {
  const ConvolutionShape& s = shape_;
  for (int64_t row = 0; row < s.kernel; ++row, runs += s.out_width * run_row_) {
    for_each_panel(kernels_->panel, run_of(s), [&](int64_t first, int64_t columns) {
      kernels_->product({.a = dy,
                         .a_row = s.out_channels,
                         .a_step = 1,
                         .b = weights,
                         .b_step = kernels_->panel,
                         .result = runs + first,
                         .result_row = run_row_,
                         .rows = s.out_width,
                         .inner = s.out_channels,
                         .columns = round_up(columns, kernels_->lanes)});
      weights += s.out_channels * kernels_->panel;
    });
  }
}

NarrowWeightGradient::NarrowWeightGradient(const ConvolutionShape& s, int64_t samples)
    : shape_(s),
      map_(s),
      samples_(samples),
      rows_(std::max<int64_t>(
          1, kGradientBytes / (s.out_width * std::min(s.out_channels, kernels_->panel) *
                               static_cast<int64_t>(kFloatSize)))) {}

size_t NarrowWeightGradient::scratchpad_bytes() const {
  return static_cast<size_t>(map_.floats()) * kFloatSize;
}

void NarrowWeightGradient::execute(std::byte* scratchpad, const void* x, const void* dy,
                                   float* gradient) const {
  const ConvolutionShape& s = shape_;
  const auto* from = static_cast<const float*>(x);
  const auto* row_gradient = static_cast<const float*>(dy);
  for (int64_t sample = 0; sample < samples_; ++sample) {
    const float* map = map_.pad(from, reinterpret_cast<float*>(scratchpad));
    for (int64_t y = 0; y < s.out_height; y += rows_) {
      const int64_t rows = std::min(rows_, s.out_height - y);
      add_rows(map + y * s.stride * map_.row(), row_gradient, rows, sample == 0 && y == 0,
               gradient);
      row_gradient += rows * s.out_width * s.out_channels;
    }
    from += s.in_height * s.in_width * s.in_channels;
  }
}

// `first`: instead of adding to the gradient, begins it.
void NarrowWeightGradient::add_rows(const float* x, const float* dy, int64_t rows, bool first,
                                    float* gradient) const {
  const ConvolutionShape& s = shape_;
  for_each_panel(kernels_->panel, s.out_channels, [&](int64_t column, int64_t columns) {
    for (int64_t row = 0; row < s.kernel; ++row) {
      kernels_->product({.a = x + row * map_.row(),
                         .a_row = 1,
                         .a_step = s.stride * s.in_channels,
                         .a_jump = s.stride * map_.row(),
                         .b = dy + column,
                         .b_step = s.out_channels,
                         .result = gradient + row * run_of(s) * s.out_channels + column,
                         .result_row = s.out_channels,
                         .rows = run_of(s),
                         .inner = s.out_width,
                         .outer = rows,
                         .columns = columns,
                         .add = !first});
    }
  });
}

}  // namespace outrigger::nn::cpu
