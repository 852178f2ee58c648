#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/kernels/product.inc.h"
#include "nn/cpu/kernels/vector.h"

/// Convolutions of 3 x 3 by Winograd's minimal filtering F(2 x 2, 3 x 3): 16 products for each four
/// outputs instead of 36. With the matrices B, G and A of Lavin and Gray (2015),
///   y = A' [(G g G') * (B' x B)] A,  dg = G' [(B' x B) * (A dy A')] G,
/// where * goes place by place and is, over channels, a matrix product for each of the 16 points.
/// Coefficients are 0, 1 and 1/2: measured, results are as exact as sums of 9 products.
namespace {

using outrigger::nn::cpu::WinogradMap;
using outrigger::nn::cpu::WinogradPlanes;

constexpr int kPoints = 4;  // along an axis

// One axis: B', A (its transpose of the forward pass), A', G and G'.
inline void winograd_b(const Vector* in, int64_t step, Vector* out) {
  out[0] = in[0] - in[2 * step];
  out[1] = in[step] + in[2 * step];
  out[2] = in[2 * step] - in[step];
  out[3] = in[step] - in[3 * step];
}
inline void winograd_a(Vector first, Vector second, Vector* out) {
  out[0] = first;
  out[1] = first + second;
  out[2] = first - second;
  out[3] = broadcast(0) - second;
}
inline void winograd_at(const Vector* in, int64_t step, Vector* out) {
  out[0] = in[0] + in[step] + in[2 * step];
  out[1] = in[step] - in[2 * step] - in[3 * step];
}
inline void winograd_g(const Vector* in, int64_t step, Vector* out) {
  const Vector half = broadcast(0.5f);
  const Vector ends = (in[0] + in[2 * step]) * half, middle = in[step] * half;
  out[0] = in[0];
  out[1] = ends + middle;
  out[2] = ends - middle;
  out[3] = in[2 * step];
}
inline void winograd_gt(const Vector* in, int64_t step, Vector* out) {
  const Vector half = broadcast(0.5f);
  const Vector sum = (in[step] + in[2 * step]) * half;
  out[0] = in[0] + sum;
  out[1] = (in[step] - in[2 * step]) * half;
  out[2] = sum + in[3 * step];
}

// visit(sample's first pixel, tile's row, tile's column, number from the first) for each tile.
template <typename Visit>
inline void for_each_tile(const WinogradMap& map, int64_t first, int64_t count,
                          const Visit& visit) {
  const int64_t across = (map.width + 1) / 2, down = (map.height + 1) / 2;
  int64_t column = first % across, row = first / across % down, sample = first / across / down;
  for (int64_t tile = 0; tile < count; ++tile) {
    visit(sample * map.height * map.width, row, column, tile);
    if (++column < across) continue;
    column = 0;
    if (++row < down) continue;
    row = 0;
    ++sample;
  }
}

// work(channel, that channel's place in the first plane for tile `tile`) for each kLanes channels.
template <typename Work>
inline void for_each_lanes(int64_t channels, const WinogradPlanes& planes, int64_t tile,
                           const Work& work) {
  for (int64_t panel = 0; panel < channels; panel += planes.width) {
    float* at = planes.data + panel / planes.width * planes.panel + tile * planes.width;
    for (int64_t c = 0; c < planes.width; c += kLanes) work(panel + c, at + c);
  }
}

void winograd_input(const WinogradMap& map, const float* x, int64_t first, int64_t count,
                    const WinogradPlanes& planes) {
  for_each_tile(map, first, count, [&](int64_t pixel, int64_t row, int64_t column, int64_t tile) {
    const float* places[kPoints][kPoints];  // null: in the padding
    for (int64_t i = 0; i < kPoints; ++i) {
      for (int64_t j = 0; j < kPoints; ++j) {
        const int64_t y = 2 * row - 1 + i, at = 2 * column - 1 + j;
        const bool inside = y >= 0 && y < map.height && at >= 0 && at < map.width;
        places[i][j] = inside ? x + (pixel + y * map.width + at) * map.channels : nullptr;
      }
    }
    for_each_lanes(map.channels, planes, tile, [&](int64_t c, float* to) {
      Vector half[kPoints * kPoints];
#pragma GCC unroll 4
      for (int i = 0; i < kPoints; ++i) {
        Vector values[kPoints];
#pragma GCC unroll 4
        for (int j = 0; j < kPoints; ++j)
          values[j] = places[i][j] != nullptr ? load(places[i][j] + c) : Vector{};
        winograd_b(values, 1, half + i * kPoints);
      }
#pragma GCC unroll 4
      for (int j = 0; j < kPoints; ++j) {
        Vector out[kPoints];
        winograd_b(half + j, kPoints, out);
#pragma GCC unroll 4
        for (int i = 0; i < kPoints; ++i) store(to + (i * kPoints + j) * planes.point, out[i]);
      }
    });
  });
}

void winograd_gradient(const WinogradMap& map, const float* dy, int64_t first, int64_t count,
                       const WinogradPlanes& planes) {
  for_each_tile(map, first, count, [&](int64_t pixel, int64_t row, int64_t column, int64_t tile) {
    const float* places[2][2];
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        const int64_t y = 2 * row + i, at = 2 * column + j;
        const bool inside = y < map.height && at < map.width;
        places[i][j] = inside ? dy + (pixel + y * map.width + at) * map.channels : nullptr;
      }
    }
    for_each_lanes(map.channels, planes, tile, [&](int64_t c, float* to) {
      const auto value = [&](int i, int j) {
        return places[i][j] != nullptr ? load(places[i][j] + c) : Vector{};
      };
      Vector half[2][kPoints];
      for (int i = 0; i < 2; ++i) winograd_a(value(i, 0), value(i, 1), half[i]);
#pragma GCC unroll 4
      for (int j = 0; j < kPoints; ++j) {
        Vector out[kPoints];
        winograd_a(half[0][j], half[1][j], out);
#pragma GCC unroll 4
        for (int i = 0; i < kPoints; ++i) store(to + (i * kPoints + j) * planes.point, out[i]);
      }
    });
  });
}

void winograd_output(const WinogradMap& map, const WinogradPlanes& planes, int64_t first,
                     int64_t count, const float* bias, float* y) {
  for_each_tile(map, first, count, [&](int64_t pixel, int64_t row, int64_t column, int64_t tile) {
    const bool lower = 2 * row + 1 < map.height, right = 2 * column + 1 < map.width;
    float* corner = y + (pixel + 2 * row * map.width + 2 * column) * map.channels;
    for_each_lanes(map.channels, planes, tile, [&](int64_t c, const float* from) {
      Vector half[2][kPoints];
#pragma GCC unroll 4
      for (int j = 0; j < kPoints; ++j) {
        Vector values[kPoints], out[2];
#pragma GCC unroll 4
        for (int i = 0; i < kPoints; ++i) values[i] = load(from + (i * kPoints + j) * planes.point);
        winograd_at(values, 1, out);
        half[0][j] = out[0];
        half[1][j] = out[1];
      }
      const Vector constant = bias != nullptr ? load(bias + c) : Vector{};
      for (int i = 0; i < (lower ? 2 : 1); ++i) {
        Vector out[2];
        winograd_at(half[i], 1, out);
        float* to = corner + i * map.width * map.channels + c;
        store(to, out[0] + constant);
        if (right) store(to + map.channels, out[1] + constant);
      }
    });
  });
}

void winograd_weights(const float* taps, float* points, int64_t point) {
  for (int64_t lane = 0; lane < kPanel; lane += kLanes) {
    Vector half[3 * kPoints];
    for (int i = 0; i < 3; ++i) {
      Vector values[3];
      for (int j = 0; j < 3; ++j) values[j] = load(taps + (i * 3 + j) * kPanel + lane);
      winograd_g(values, 1, half + i * kPoints);
    }
    for (int j = 0; j < kPoints; ++j) {
      Vector out[kPoints];
      winograd_g(half + j, kPoints, out);
      for (int i = 0; i < kPoints; ++i) store(points + (i * kPoints + j) * point + lane, out[i]);
    }
  }
}

void winograd_weight_gradient(const float* points, int64_t point, int64_t count, bool add,
                              float* taps, int64_t tap) {
  for (int64_t at = 0; at < count; at += kLanes) {
    Vector half[kPoints * 3];
#pragma GCC unroll 4
    for (int i = 0; i < kPoints; ++i) {
      Vector values[kPoints];
#pragma GCC unroll 4
      for (int j = 0; j < kPoints; ++j) values[j] = load(points + (i * kPoints + j) * point + at);
      winograd_gt(values, 1, half + i * 3);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 3; ++j) {
      Vector out[3];
      winograd_gt(half + j, 3, out);
#pragma GCC unroll 4
      for (int i = 0; i < 3; ++i) {
        float* to = taps + (i * 3 + j) * tap + at;
        store(to, add ? load(to) + out[i] : out[i]);
      }
    }
  }
}

}  // namespace
