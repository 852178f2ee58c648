#pragma once

// Convolutions of 3 x 3 with one or two channels a group, which memory bounds: a thread goes along
// a row of the output, a few channels at a time, and reads each place of its rows of the input
// once. And depthwise ones over the whole map.

#include "nn/cuda/kernels/columns.h"
#include "nn/cuda/kernels/window.inc.h"

namespace outrigger::nn::cuda {

inline constexpr int kDepthwiseTaps = 9;

/// How many channels a thread has where groups have so many: whole groups, whose window and weights
/// are in registers.
template <int kGroup>
inline constexpr int kDepthwiseWidth = 4 / kGroup;

/// The rows of a map that a row of windows lies over; zeros where there is no map.
template <typename T, int N, int kRows>
struct MapRows {
  const T* row[kRows];  // null: none
  int width;
  uint32_t channels;

  /// `y`: of the first of them; c: of the first channel.
  OUTRIGGER_BOTH MapRows(const T* map, int n, int y, uint32_t c, int height, int columns,
                         uint32_t map_channels)
      : width(columns), channels(map_channels) {
    for (int k = 0; k < kRows; ++k) {
      const bool there = y + k >= 0 && y + k < height;
      row[k] = there ? map + index_of(n, y + k, 0, height, columns, channels, c) : nullptr;
    }
  }
  OUTRIGGER_BOTH Pack<T, N> at(int k, int x) const {
    if (row[k] == nullptr || x < 0 || x >= width) return {};
    return read_pack<N>(row[k] + static_cast<uint32_t>(x) * channels);
  }
};

/// A window that moves along them.
template <typename T, int N, int kStride>
struct MovingWindow {
  const MapRows<T, N, 3> rows;
  Pack<T, N> values[3][3];
  int next;  // the column of the map that comes next

  /// `x`: of the first window's first column.
  OUTRIGGER_BOTH MovingWindow(const MapRows<T, N, 3>& of, int x) : rows(of), next(x) {
    for (int column = kStride; column < 3; ++column) read(column);
  }
  OUTRIGGER_BOTH void read(int column) {
    for (int k = 0; k < 3; ++k) values[k][column] = rows.at(k, next);
    ++next;
  }
  /// To the first window, and from each to the next one.
  OUTRIGGER_BOTH void move() {
    for (int column = 0; column + kStride < 3; ++column) {
      for (int k = 0; k < 3; ++k) values[k][column] = values[k][column + kStride];
    }
    for (int column = 3 - kStride; column < 3; ++column) read(column);
  }
};

enum class Towards : uint8_t { kOutput, kInput };

/// {out, 3, 3, kGroup} of the groups of N channels in a row.
template <typename T, int kGroup>
struct DepthwiseWeights {
  static constexpr int kWidth = kDepthwiseWidth<kGroup>;
  float of[kDepthwiseTaps][kWidth][kGroup];

  /// Forward to channel j of the output from the g-th of its group. Backward to channel j of the
  /// input, and through the window the other way round.
  OUTRIGGER_BOTH DepthwiseWeights(const T* weights, uint32_t c, Towards towards) {
    const T* from = weights + c * kDepthwiseTaps * kGroup;
    for (int tap = 0; tap < kDepthwiseTaps; ++tap) {
      for (int j = 0; j < kWidth; ++j) {
        for (int g = 0; g < kGroup; ++g) {
          const int forward_at = (j * kDepthwiseTaps + tap) * kGroup + g;
          const int backward_at =
              ((j / kGroup * kGroup + g) * kDepthwiseTaps + kDepthwiseTaps - 1 - tap) * kGroup +
              j % kGroup;
          of[tap][j][g] = to_float(from[towards == Towards::kInput ? backward_at : forward_at]);
        }
      }
    }
  }
  OUTRIGGER_BOTH void add(float (&sums)[kWidth], const Pack<T, kWidth>& values, int tap) const {
    for (int j = 0; j < kWidth; ++j) {
      for (int g = 0; g < kGroup; ++g)
        sums[j] += to_float(values.values[j / kGroup * kGroup + g]) * of[tap][j][g];
    }
  }
};

/// i counts rows of outputs, N channels each. With a stride of 1 it makes dx of dy too: the shape
/// is then of dy's map to dx's.
template <typename T, int kGroup, int kStride>
struct DepthwiseKernel {
  static constexpr int kWidth = kDepthwiseWidth<kGroup>;
  const T* x;
  const T* weights;
  T* y;
  Towards towards;
  bool add;
  ConvolutionShape shape;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const ConvolutionShape& s = shape;
    const Place out = place_of(i, s.out_height, 1, s.out_channels / kWidth);
    const uint32_t c = out.c * kWidth;
    const DepthwiseWeights<T, kGroup> factors(weights, c, towards);
    MovingWindow<T, kWidth, kStride> window(
        {x, out.n, out.y * kStride - s.padding, c, s.in_height, s.in_width, s.in_channels},
        -s.padding);
    T* to = y + index_of(out.n, out.y, 0, s.out_height, s.out_width, s.out_channels, c);
    OUTRIGGER_UNROLL
    for (int column = 0; column < s.out_width; ++column, to += s.out_channels) {
      window.move();
      float sums[kWidth] = {};
      for (int tap = 0; tap < kDepthwiseTaps; ++tap)
        factors.add(sums, window.values[tap / 3][tap % 3], tap);
      save(to, sums, add);
    }
  }
};

/// dx of a stride of 2 and a padding of 1: i counts pairs of rows of the input, N channels each. Of
/// two rows and two columns of it, only a window of 2 x 2 of dy knows.
template <typename T, int kGroup>
struct DepthwiseInputKernel {
  static constexpr int kWidth = kDepthwiseWidth<kGroup>;
  const T* dy;
  const T* weights;
  T* dx;
  bool add;
  ConvolutionShape shape;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const ConvolutionShape& s = shape;
    const Place in = place_of(i, (s.in_height + 1) / 2, 1, s.in_channels / kWidth);
    const uint32_t c = in.c * kWidth;
    const DepthwiseWeights<T, kGroup> factors(weights, c, Towards::kInput);
    const MapRows<T, kWidth, 2> rows(dy, in.n, in.y, c, s.out_height, s.out_width, s.out_channels);
    T* to = dx + index_of(in.n, 2 * in.y, 0, s.in_height, s.in_width, s.in_channels, c);
    const uint32_t below = static_cast<uint32_t>(s.in_width) * s.in_channels;
    Pack<T, kWidth> next[2] = {rows.at(0, 0), rows.at(1, 0)};
    for (int column = 0; column < s.in_width; column += 2, to += 2 * s.in_channels) {
      const Pack<T, kWidth> here[2] = {next[0], next[1]};
      for (int k = 0; k < 2; ++k) next[k] = rows.at(k, column / 2 + 1);
      float sums[2][2][kWidth] = {};
      // Of the window the other way round: its middle is tap 4.
      factors.add(sums[0][0], here[0], 4);
      factors.add(sums[0][1], here[0], 3);
      factors.add(sums[0][1], next[0], 5);
      factors.add(sums[1][0], here[0], 1);
      factors.add(sums[1][0], here[1], 7);
      factors.add(sums[1][1], here[0], 0);
      factors.add(sums[1][1], next[0], 2);
      factors.add(sums[1][1], here[1], 6);
      factors.add(sums[1][1], next[1], 8);
      for (int k = 0; k < 2; ++k) {
        if (2 * in.y + k >= s.in_height) break;
        save(to + static_cast<uint32_t>(k) * below, sums[k][0], add);
        if (column + 1 < s.in_width)
          save(to + static_cast<uint32_t>(k) * below + s.in_channels, sums[k][1], add);
      }
    }
  }
};

/// All weights of N channels at once: one row of the launch a row of outputs.
template <typename T, int kGroup, int kStride>
struct DepthwiseWeightsKernel {
  static constexpr int kWidth = kDepthwiseWidth<kGroup>, kSums = kDepthwiseTaps * kGroup;
  const T* x;
  const T* dy;
  float* gradient;
  ConvolutionShape shape;

  using Column = PlainColumn;
  OUTRIGGER_BOTH Column column(uint32_t, uint32_t at) const { return {at}; }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    const ConvolutionShape& s = shape;
    const Place out = place_of(row, s.out_height, 1, 1);
    MovingWindow<T, kWidth, kStride> window(
        {x, out.n, out.y * kStride - s.padding, column.at, s.in_height, s.in_width, s.in_channels},
        -s.padding);
    const T* from =
        dy + index_of(out.n, out.y, 0, s.out_height, s.out_width, s.out_channels, column.at);
    OUTRIGGER_UNROLL
    for (int at = 0; at < s.out_width; ++at, from += s.out_channels) {
      window.move();
      float slope[kWidth];
      load(from, slope);
      for (int sum = 0; sum < kSums; ++sum) {
        const int tap = sum / kGroup, g = sum % kGroup;
        for (int j = 0; j < kWidth; ++j) {
          const auto value = window.values[tap / 3][tap % 3].values[j / kGroup * kGroup + g];
          sums[sum * kWidth + j] += to_float(value) * slope[j];
        }
      }
    }
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t o, const double* sums) const {
    for (int sum = 0; sum < kSums; ++sum) {
      const uint32_t tap = static_cast<uint32_t>(sum) / kGroup,
                     g = static_cast<uint32_t>(sum) % kGroup;
      gradient[(o * kGroup + g) * kDepthwiseTaps + tap] = static_cast<float>(sums[sum]);
    }
  }
};

/// Whether each place of a depthwise convolution's window meets one place of the map.
inline bool has_whole_map_kernel(const ConvolutionShape& s) {
  return s.depthwise() && s.padding == 0 && s.kernel == s.in_height && s.kernel == s.in_width;
}

/// i counts inputs.
template <typename T>
struct WholeMapInputKernel {
  const T* dy;
  const T* weights;
  T* dx;
  bool add;
  uint32_t area, channels;
  OUTRIGGER_BOTH void operator()(uint32_t i) const {
    const uint32_t c = i % channels, place = i / channels % area, n = i / channels / area;
    const float weight = to_float(weights[c * area + place]);
    store(dx + i, to_float(dy[n * channels + c]) * weight, add);
  }
};

/// Columns are the places of a sample's channels, rows are samples.
template <typename T, int N>
struct WholeMapWeightsKernel {
  static constexpr int kWidth = N, kSums = 1;
  const T* x;
  const T* dy;
  float* gradient;
  uint32_t area, channels;

  using Column = PlainColumn;
  OUTRIGGER_BOTH Column column(uint32_t, uint32_t at) const { return {at}; }
  OUTRIGGER_BOTH void term(const Column& column, uint32_t row, float* sums) const {
    float value[N], slope[N];
    load(x + row * area * channels + column.at, value);
    load(dy + row * channels + column.at % channels, slope);
    for (int j = 0; j < N; ++j) sums[j] += value[j] * slope[j];
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t at, const double* sums) const {
    gradient[at % channels * area + at / channels] = static_cast<float>(sums[0]);
  }
};

}  // namespace outrigger::nn::cuda
