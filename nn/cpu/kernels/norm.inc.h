#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/kernels/vector.h"

/// Batch norm over one block of samples. A tile is `kWide` vectors of neighbouring channels, held
/// in registers while the rows (one period each) pass by.
namespace {

using outrigger::nn::cpu::Activation;
using outrigger::nn::cpu::NormBackward;
using outrigger::nn::cpu::NormForward;
using outrigger::nn::cpu::NormReduce;

// So many rows are added up before they join the total: keeps rounding small without a second pass.
constexpr int64_t kRowsPerSum = 128;

// Calls tile.template run<V>(first place) over a period.
template <typename Tile>
inline void for_each_tile(int64_t period, const Tile& tile) {
  int64_t place = 0;
  for (; place + 4 * kLanes <= period; place += 4 * kLanes) tile.template run<4>(place);
  if (place + 2 * kLanes <= period) {
    tile.template run<2>(place);
    place += 2 * kLanes;
  }
  if (place < period) tile.template run<1>(place);
}

// How many values of vector v of a tile the last, incomplete row has.
inline int64_t in_last_row(int64_t rest, int64_t place) {
  const int64_t left = rest - place;
  return left < 0 ? 0 : left > kLanes ? kLanes : left;
}

template <typename T>
struct StatisticsTile {
  const T* x;
  int64_t count, period;
  float* partial;

  template <int kWide>
  void run(int64_t place) const {
    const int64_t rows = count / period, rest = count % period;
    Vector first[kWide], sum[kWide] = {}, square[kWide] = {};
    for (int v = 0; v < kWide; ++v) {
      const int64_t at = place + v * kLanes;
      first[v] = rows > 0 ? load(x + at) : load_some(x + at, in_last_row(rest, at), Vector{});
    }
    for (int64_t begin = 0; begin < rows; begin += kRowsPerSum) {
      const int64_t end = begin + kRowsPerSum < rows ? begin + kRowsPerSum : rows;
      Vector part[kWide] = {}, part_square[kWide] = {};
      for (int64_t row = begin; row < end; ++row) {
        for (int v = 0; v < kWide; ++v) {
          const Vector distance = load(x + row * period + place + v * kLanes) - first[v];
          part[v] += distance;
          part_square[v] += distance * distance;
        }
      }
      for (int v = 0; v < kWide; ++v) sum[v] += part[v], square[v] += part_square[v];
    }
    for (int v = 0; v < kWide; ++v) {
      const int64_t at = place + v * kLanes;
      const Vector distance =
          load_some(x + rows * period + at, in_last_row(rest, at), first[v]) - first[v];
      store(partial + at, first[v]);
      store(partial + period + at, sum[v] + distance);
      store(partial + 2 * period + at, square[v] + distance * distance);
    }
  }
};

template <typename T>
void norm_statistics(const T* x, int64_t count, int64_t period, float* partial) {
  for_each_tile(period, StatisticsTile<T>{x, count, period, partial});
}

template <typename T, bool kAdd, Activation kActivation>
struct ForwardTile {
  const NormForward<T>& a;

  template <int kWide>
  void run(int64_t place) const {
    const int64_t rows = a.count / a.period, rest = a.count % a.period;
    Vector mean[kWide], scale[kWide], shift[kWide], slope[kWide] = {};
    for (int v = 0; v < kWide; ++v) {
      mean[v] = load(a.mean + place + v * kLanes);
      scale[v] = load(a.scale + place + v * kLanes);
      shift[v] = load(a.shift + place + v * kLanes);
      if (kActivation == Activation::kPrelu) slope[v] = load(a.slope + place + v * kLanes);
    }
    const auto apply = [&](int v, Vector x, Vector other) {
      Vector y = (x - mean[v]) * scale[v] + shift[v];
      if (kAdd) y += other;
      if (kActivation == Activation::kRelu) y = select(y <= 0.0f, Vector{}, y);
      if (kActivation == Activation::kPrelu) y = select(y > 0.0f, y, y * slope[v]);
      return y;
    };
    for (int64_t row = 0; row < rows; ++row) {
      for (int v = 0; v < kWide; ++v) {
        const int64_t at = row * a.period + place + v * kLanes;
        store(a.y + at, apply(v, load(a.x + at), kAdd ? load(a.other + at) : Vector{}));
      }
    }
    for (int v = 0; v < kWide; ++v) {
      const int64_t values = in_last_row(rest, place + v * kLanes);
      const int64_t at = rows * a.period + place + v * kLanes;
      if (values == 0) continue;
      const Vector other = kAdd ? load_some(a.other + at, values, Vector{}) : Vector{};
      store_some(a.y + at, values, apply(v, load_some(a.x + at, values, Vector{}), other));
    }
  }
};

template <typename T, bool kAdd>
void norm_forward_with(const NormForward<T>& a) {
  switch (a.activation) {
    case Activation::kNone:
      return for_each_tile(a.period, ForwardTile<T, kAdd, Activation::kNone>{a});
    case Activation::kRelu:
      return for_each_tile(a.period, ForwardTile<T, kAdd, Activation::kRelu>{a});
    case Activation::kPrelu:
      return for_each_tile(a.period, ForwardTile<T, kAdd, Activation::kPrelu>{a});
  }
}
template <typename T>
void norm_forward(const NormForward<T>& a) {
  a.other ? norm_forward_with<T, true>(a) : norm_forward_with<T, false>(a);
}

// kRelu with kByOutput looks at y, without at what entered it, computed anew as the forward pass
// did.
template <typename T, Activation kActivation, bool kByOutput, bool kTwo, bool kWrite>
struct ReduceTile {
  const NormReduce<T>& a;

  template <int kWide>
  void run(int64_t place) const {
    constexpr bool kAnew =
        kActivation == Activation::kPrelu || (kActivation == Activation::kRelu && !kByOutput);
    const int64_t rows = a.count / a.period, rest = a.count % a.period;
    Vector mean[kWide], scale[kWide] = {}, shift[kWide] = {}, slope[kWide] = {};
    Vector sum[kWide] = {}, product[kWide] = {}, slopes[kWide] = {};
    for (int v = 0; v < kWide; ++v) {
      mean[v] = load(a.mean + place + v * kLanes);
      if (kAnew) scale[v] = load(a.scale + place + v * kLanes);
      if (kAnew) shift[v] = load(a.shift + place + v * kLanes);
      if (kActivation == Activation::kPrelu) slope[v] = load(a.slope + place + v * kLanes);
    }
    Vector part[kWide], part_product[kWide], part_slopes[kWide];
    const auto take = [&](int v, Vector x, Vector y, Vector gradient) {
      const Vector distance = x - mean[v];
      Vector z = gradient;
      if (kActivation == Activation::kRelu) {
        const Vector decides = kByOutput ? y : distance * scale[v] + shift[v];
        z = zero_unless(decides > 0.0f, gradient);
      } else if (kActivation == Activation::kPrelu) {
        const Vector entered = distance * scale[v] + shift[v];
        const Mask passes = entered > 0.0f;
        z = select(passes, gradient, gradient * slope[v]);
        part_slopes[v] += zero_unless(~passes, gradient * entered);
      }
      part[v] += z;
      part_product[v] += z * distance;
      return z;
    };
    const auto flush = [&] {
      for (int v = 0; v < kWide; ++v) {
        sum[v] += part[v], product[v] += part_product[v];
        if (kActivation == Activation::kPrelu) slopes[v] += part_slopes[v];
      }
    };
    const auto clear = [&] {
      for (int v = 0; v < kWide; ++v) part[v] = part_product[v] = part_slopes[v] = Vector{};
    };
    for (int64_t begin = 0; begin < rows; begin += kRowsPerSum) {
      const int64_t end = begin + kRowsPerSum < rows ? begin + kRowsPerSum : rows;
      clear();
      for (int64_t row = begin; row < end; ++row) {
        for (int v = 0; v < kWide; ++v) {
          const int64_t at = row * a.period + place + v * kLanes;
          Vector gradient = load(a.gradient + at);
          if (kTwo) gradient += load(a.gradient2 + at);
          const Vector y = kByOutput ? load(a.y + at) : Vector{};
          const Vector z = take(v, load(a.x + at), y, gradient);
          if (kWrite) store(a.z + at, z);
        }
      }
      flush();
    }
    clear();
    for (int v = 0; v < kWide; ++v) {
      const int64_t values = in_last_row(rest, place + v * kLanes);
      const int64_t at = rows * a.period + place + v * kLanes;
      if (values == 0) continue;
      Vector gradient = load_some(a.gradient + at, values, Vector{});
      if (kTwo) gradient += load_some(a.gradient2 + at, values, Vector{});
      const Vector y = kByOutput ? load_some(a.y + at, values, Vector{}) : Vector{};
      const Vector z = take(v, load_some(a.x + at, values, mean[v]), y, gradient);
      if (kWrite) store_some(a.z + at, values, z);
    }
    flush();
    for (int v = 0; v < kWide; ++v) {
      store(a.sums + place + v * kLanes, sum[v]);
      store(a.sums + a.period + place + v * kLanes, product[v]);
      if (kActivation == Activation::kPrelu)
        store(a.sums + 2 * a.period + place + v * kLanes, slopes[v]);
    }
  }
};

template <typename T, Activation kActivation, bool kByOutput>
void norm_reduce_with(const NormReduce<T>& a) {
  if (a.gradient2) {
    a.z ? for_each_tile(a.period, ReduceTile<T, kActivation, kByOutput, true, true>{a})
        : for_each_tile(a.period, ReduceTile<T, kActivation, kByOutput, true, false>{a});
  } else {
    a.z ? for_each_tile(a.period, ReduceTile<T, kActivation, kByOutput, false, true>{a})
        : for_each_tile(a.period, ReduceTile<T, kActivation, kByOutput, false, false>{a});
  }
}
template <typename T>
void norm_reduce(const NormReduce<T>& a) {
  switch (a.activation) {
    case Activation::kNone:
      return norm_reduce_with<T, Activation::kNone, false>(a);
    case Activation::kRelu:
      return a.y ? norm_reduce_with<T, Activation::kRelu, true>(a)
                 : norm_reduce_with<T, Activation::kRelu, false>(a);
    case Activation::kPrelu:
      return norm_reduce_with<T, Activation::kPrelu, false>(a);
  }
}

template <typename T, Activation kActivation>
struct BackwardTile {
  const NormBackward<T>& a;

  template <int kWide>
  void run(int64_t place) const {
    const int64_t rows = a.count / a.period, rest = a.count % a.period;
    Vector mean[kWide], scale[kWide] = {}, shift[kWide] = {}, slope[kWide] = {};
    Vector factor[kWide], by_distance[kWide], constant[kWide];
    for (int v = 0; v < kWide; ++v) {
      const int64_t at = place + v * kLanes;
      mean[v] = load(a.mean + at);
      if (kActivation != Activation::kNone) scale[v] = load(a.scale + at);
      if (kActivation != Activation::kNone) shift[v] = load(a.shift + at);
      if (kActivation == Activation::kPrelu) slope[v] = load(a.slope + at);
      factor[v] = load(a.factor + at);
      by_distance[v] = load(a.by_distance + at);
      constant[v] = load(a.constant + at);
    }
    const auto apply = [&](int v, Vector x, Vector gradient) {
      const Vector distance = x - mean[v];
      Vector z = gradient;
      if (kActivation != Activation::kNone) {
        const Mask passes = distance * scale[v] + shift[v] > 0.0f;
        z = kActivation == Activation::kRelu ? zero_unless(passes, gradient)
                                             : select(passes, gradient, gradient * slope[v]);
      }
      return z * factor[v] + distance * by_distance[v] + constant[v];
    };
    for (int64_t row = 0; row < rows; ++row) {
      for (int v = 0; v < kWide; ++v) {
        const int64_t at = row * a.period + place + v * kLanes;
        store(a.dx + at, apply(v, load(a.x + at), load(a.gradient + at)));
      }
    }
    for (int v = 0; v < kWide; ++v) {
      const int64_t values = in_last_row(rest, place + v * kLanes);
      const int64_t at = rows * a.period + place + v * kLanes;
      if (values == 0) continue;
      store_some(a.dx + at, values,
                 apply(v, load_some(a.x + at, values, Vector{}),
                       load_some(a.gradient + at, values, Vector{})));
    }
  }
};

template <typename T>
void norm_backward(const NormBackward<T>& a) {
  switch (a.activation) {
    case Activation::kNone:
      return for_each_tile(a.period, BackwardTile<T, Activation::kNone>{a});
    case Activation::kRelu:
      return for_each_tile(a.period, BackwardTile<T, Activation::kRelu>{a});
    case Activation::kPrelu:
      return for_each_tile(a.period, BackwardTile<T, Activation::kPrelu>{a});
  }
}

}  // namespace
