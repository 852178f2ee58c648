#pragma once

#include <utility>

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/kernels/vector.h"

/// Convolutions whose groups have 1, 2 or 4 channels: a vector of channels at a time, in which each
/// lane wants, of its own group, one channel after the other.
namespace {

using outrigger::nn::cpu::GroupedGradient;
using outrigger::nn::cpu::GroupedRow;

constexpr int kOutputsAtOnce = kInstrumented ? 2 : 8;
constexpr int kTapsAtOnce = 3;  // of a row of the kernel, in a gradient
constexpr int kTapRowsAtOnce = kInstrumented ? 1 : 3;

/// In each lane, channel `kChannel` of its group.
template <int kGroup, int kChannel>
inline Vector of_group(const float* from) {
  if constexpr (kGroup == 1) {
    return load(from);
  } else {
    // From memory these cost no more than a load, but for groups of four.
#if defined(__AVX512F__)
    const __m512 x = _mm512_loadu_ps(from);
    if constexpr (kGroup == 4) {
      return reinterpret_cast<Vector>(_mm512_permute_ps(x, kChannel * 0b01010101));
    } else {
      return reinterpret_cast<Vector>(kChannel == 0 ? _mm512_moveldup_ps(x)
                                                    : _mm512_movehdup_ps(x));
    }
#elif defined(__AVX2__)
    const __m256 x = _mm256_loadu_ps(from);
    if constexpr (kGroup == 4) {
      return reinterpret_cast<Vector>(_mm256_permute_ps(x, kChannel * 0b01010101));
    } else {
      return reinterpret_cast<Vector>(kChannel == 0 ? _mm256_moveldup_ps(x)
                                                    : _mm256_movehdup_ps(x));
    }
#else
    constexpr int kOfTwo = kChannel == 0 ? 0b10100000 : 0b11110101;
    const __m128 x = _mm_loadu_ps(from);
    return reinterpret_cast<Vector>(
        _mm_shuffle_ps(x, x, kGroup == 4 ? kChannel * 0b01010101 : kOfTwo));
#endif
  }
}

/// work(an std::integral_constant) for each channel of a group.
template <int kGroup, typename Work>
inline void for_each_of_group(const Work& work) {
  [&]<int... kChannels>(std::integer_sequence<int, kChannels...>) {
    (work(std::integral_constant<int, kChannels>{}), ...);
  }
  (std::make_integer_sequence<int, kGroup>{});
}

template <typename T>
void block_channels(const T* x, int64_t places, int64_t channels, int64_t padding, float* blocked) {
  const auto zeros = [&](float* to) {
    for (int64_t i = 0; i < padding; ++i) store(to + i * kLanes, Vector{});
    return to + padding * kLanes;
  };
  for (int64_t first = 0; first < channels; first += kLanes) {
    blocked = zeros(blocked);
    for (int64_t place = 0; place < places; ++place, blocked += kLanes)
      store(blocked, load(x + place * channels + first));
    blocked = zeros(blocked);
  }
}

template <int kGroup, int kOutputs, typename T>
inline void grouped_outputs(const GroupedRow<T>& g, int64_t block, int64_t first) {
  const Vector start = g.bias != nullptr ? load(g.bias + block * kLanes) : Vector{};
  Vector sums[kOutputs];
#pragma GCC unroll 8
  for (int i = 0; i < kOutputs; ++i) sums[i] = start;
  const float* weights = g.weights + block * g.kernel * g.kernel * kGroup * kLanes;
  for (int64_t row = 0; row < g.kernel; ++row) {
    const float* x = g.rows[row] + (block * g.width + first) * kLanes;
    for (int64_t column = 0; column < g.kernel; ++column, x += kLanes) {
      for_each_of_group<kGroup>([&](auto channel) {
        const Vector weight = load(weights);
        weights += kLanes;
#pragma GCC unroll 8
        for (int i = 0; i < kOutputs; ++i)
          sums[i] = multiply_add(of_group<kGroup, decltype(channel)::value>(x + i * kLanes), weight,
                                 sums[i]);
      });
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kOutputs; ++i)
    store(g.y + (first + i) * g.channels + block * kLanes, sums[i]);
}

template <int kGroup, int kOutputs, typename T>
inline void grouped_last_outputs(const GroupedRow<T>& g, int64_t block, int64_t first) {
  if (g.outputs - first == kOutputs) return grouped_outputs<kGroup, kOutputs>(g, block, first);
  if constexpr (kOutputs > 1) grouped_last_outputs<kGroup, kOutputs - 1>(g, block, first);
}

template <int kGroup, typename T>
void grouped_row_of(const GroupedRow<T>& g) {
  for (int64_t block = 0; block < g.channels / kLanes; ++block) {
    int64_t first = 0;
    for (; first + kOutputsAtOnce <= g.outputs; first += kOutputsAtOnce)
      grouped_outputs<kGroup, kOutputsAtOnce>(g, block, first);
    grouped_last_outputs<kGroup, kOutputsAtOnce - 1>(g, block, first);
  }
}

template <typename T>
void grouped_row(const GroupedRow<T>& g) {
  if (g.group == 1) return grouped_row_of<1>(g);
  if (g.group == 2) return grouped_row_of<2>(g);
  grouped_row_of<4>(g);
}

template <int kGroup, int kRows, int kColumns, typename T>
inline void grouped_taps(const GroupedGradient<T>& g, int64_t block, int64_t row, int64_t column) {
  Vector sums[kRows][kColumns][kGroup]{};
  const float* x[kRows];
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) x[r] = g.rows[row + r] + (block * g.width + column) * kLanes;
  const T* dy = g.dy + block * kLanes;
  for (int64_t i = 0; i < g.outputs; ++i, dy += g.channels) {
    const Vector gradient = load(dy);
    const int64_t at = i * kLanes;
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
      for (int c = 0; c < kColumns; ++c)
        for_each_of_group<kGroup>([&](auto channel) {
          constexpr int kChannel = decltype(channel)::value;
          sums[r][c][kChannel] = multiply_add(of_group<kGroup, kChannel>(x[r] + at + c * kLanes),
                                              gradient, sums[r][c][kChannel]);
        });
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < kColumns; ++c)
      for_each_of_group<kGroup>([&](auto channel) {
        constexpr int kChannel = decltype(channel)::value;
        const int64_t tap = (row + r) * g.kernel + column + c;
        float* to = g.gradient + (tap * kGroup + kChannel) * g.channels + block * kLanes;
        store(to, load(to) + sums[r][c][kChannel]);
      });
  }
}

template <int kGroup, int kRows, typename T>
inline void grouped_tap_rows(const GroupedGradient<T>& g, int64_t block, int64_t row) {
  int64_t column = 0;
  for (; column + kTapsAtOnce <= g.kernel; column += kTapsAtOnce)
    grouped_taps<kGroup, kRows, kTapsAtOnce>(g, block, row, column);
  for (; column < g.kernel; ++column) grouped_taps<kGroup, kRows, 1>(g, block, row, column);
}

template <int kGroup, typename T>
void grouped_gradient_of(const GroupedGradient<T>& g) {
  constexpr int kFit = kMostSums / (kTapsAtOnce * kGroup);
  constexpr int kRows = kFit < kTapRowsAtOnce ? kFit : kTapRowsAtOnce;
  for (int64_t block = 0; block < g.channels / kLanes; ++block) {
    int64_t row = 0;
    for (; row + kRows <= g.kernel; row += kRows) grouped_tap_rows<kGroup, kRows>(g, block, row);
    for (; row < g.kernel; ++row) grouped_tap_rows<kGroup, 1>(g, block, row);
  }
}

template <typename T>
void grouped_gradient(const GroupedGradient<T>& g) {
  if (g.group == 1) return grouped_gradient_of<1>(g);
  if (g.group == 2) return grouped_gradient_of<2>(g);
  grouped_gradient_of<4>(g);
}

}  // namespace
