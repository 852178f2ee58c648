#pragma once

#include <algorithm>
#include <string>

#include "nn/cuda/device/launch.h"
#include "nn/cuda/errors.h"
#include "nn/cuda/kernels/kernels_over.inc.h"

namespace outrigger::nn::cuda {

constexpr int kThreads = 256;

template <typename F>
__global__ void each_kernel(uint32_t count, F f) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) f(i);
}

/// How a launch goes over the columns of groups of rows: a block has so many packs of columns side
/// by side, in as many lines of threads as there is room for, which take the rows of a chunk in
/// turn.
struct Tiling {
  Matrix group;
  uint32_t packs = 0;  // of a row
  uint32_t packs_of_block = 0;
  uint32_t tiles = 0;  // that many blocks side by side
  uint32_t rows_of_chunk = 0;
  uint32_t chunks = 0;  // of a group
};

/// visit(column, row) for every row of this thread's columns.
template <typename F, typename Visit>
__device__ void for_each_row(const Tiling& tiling, const F& f, const Visit& visit) {
  const uint32_t lines = kThreads / tiling.packs_of_block;
  const uint32_t line = threadIdx.x / tiling.packs_of_block;
  const uint32_t pack = blockIdx.x * tiling.packs_of_block + threadIdx.x % tiling.packs_of_block;
  if (line >= lines || pack >= tiling.packs) return;
  const uint32_t begin = blockIdx.z * tiling.group.rows;
  const uint32_t first = blockIdx.y * tiling.rows_of_chunk;
  const uint32_t last = begin + min(first + tiling.rows_of_chunk, tiling.group.rows);
  const auto column = f.column(blockIdx.z, pack * F::kWidth);
  OUTRIGGER_UNROLL
  for (uint32_t row = begin + first + line; row < last; row += lines) visit(column, row);
}

template <typename F>
__global__ void __launch_bounds__(kThreads) rows_of_columns_kernel(Tiling tiling, F f) {
  for_each_row(tiling, f, [&](const auto& column, uint32_t row) { f.apply(column, row); });
}

// partials {groups, chunks, kSums, columns}
template <typename F>
__global__ void __launch_bounds__(kThreads) columns_kernel(Tiling tiling, F f, float* partials) {
  constexpr int kWidth = F::kWidth, kAll = F::kSums * kWidth;
  __shared__ float shared[kAll][kThreads];
  float sums[kAll] = {};
  for_each_row(tiling, f, [&](const auto& column, uint32_t row) { f.term(column, row, sums); });
  for (int i = 0; i < kAll; ++i) shared[i][threadIdx.x] = sums[i];
  __syncthreads();
  const uint32_t packs = tiling.packs_of_block, lines = kThreads / packs;
  for (uint32_t i = threadIdx.x; i < packs * kAll; i += kThreads) {
    const uint32_t of = i / packs, pack = i % packs;
    if (blockIdx.x * packs + pack >= tiling.packs) continue;
    float sum = 0;
    for (uint32_t line = 0; line < lines; ++line) sum += shared[of][line * packs + pack];
    const uint32_t row = (blockIdx.z * tiling.chunks + blockIdx.y) * F::kSums + of / kWidth;
    partials[row * tiling.group.columns + (blockIdx.x * packs + pack) * kWidth + of % kWidth] = sum;
  }
}

// Few columns a block, so that there are blocks for many multiprocessors.
constexpr int kFinishColumns = 8, kFinishLines = 32;

// In an order of its own, so that sums are the same every time.
template <typename F>
__global__ void finish_columns_kernel(uint32_t columns, uint32_t groups, uint32_t chunks, F f,
                                      const float* partials) {
  __shared__ double shared[F::kSums][kFinishLines][kFinishColumns];
  const uint32_t column = blockIdx.x * kFinishColumns + threadIdx.x;
  for (uint32_t group = 0; group < groups; ++group) {
    double sums[F::kSums] = {};
    if (column < columns) {
      for (uint32_t chunk = threadIdx.y; chunk < chunks; chunk += kFinishLines) {
        const float* from = partials + (group * chunks + chunk) * F::kSums * columns + column;
        for (int s = 0; s < F::kSums; ++s)
          sums[s] += static_cast<double>(from[static_cast<uint32_t>(s) * columns]);
      }
    }
    for (int s = 0; s < F::kSums; ++s) shared[s][threadIdx.y][threadIdx.x] = sums[s];
    __syncthreads();
    for (uint32_t half = kFinishLines / 2; half > 0; half /= 2) {
      if (threadIdx.y < half) {
        for (int s = 0; s < F::kSums; ++s)
          shared[s][threadIdx.y][threadIdx.x] += shared[s][threadIdx.y + half][threadIdx.x];
      }
      __syncthreads();
    }
    if (threadIdx.y == 0 && column < columns) {
      for (int s = 0; s < F::kSums; ++s) sums[s] = shared[s][0][threadIdx.x];
      f.finish(group, column, sums);
    }
  }
}

constexpr int kRowThreads = 128;

template <typename F>
__global__ void rows_kernel(uint32_t columns, F f) {
  __shared__ float warps[kRowThreads / 32];
  const uint32_t row = blockIdx.x;
  float sum = 0;
  for (uint32_t c = threadIdx.x; c < columns; c += kRowThreads) sum += f.term(row, c);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lane);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kRowThreads / 32; ++warp) sum += warps[warp];
  for (uint32_t c = threadIdx.x; c < columns; c += kRowThreads) f.finish(row, c, sum);
}

template <typename F>
__global__ void row_states_kernel(uint32_t columns, F f) {
  using State = typename F::State;
  __shared__ State shared[kRowThreads];
  const uint32_t row = blockIdx.x;
  State state = f.none();
  for (uint32_t c = threadIdx.x; c < columns; c += kRowThreads)
    state = f.merge(state, f.term(row, c));
  shared[threadIdx.x] = state;
  for (uint32_t half = kRowThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      shared[threadIdx.x] = f.merge(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  state = shared[0];
  for (uint32_t c = threadIdx.x; c < columns; c += kRowThreads) f.finish(row, c, state);
}

/// Where KernelsOver's loops run: grids on a stream.
class CudaLauncher {
 public:
  CudaLauncher(cudaStream_t stream, void* partial_sums)
      : stream_(stream), partials_(static_cast<float*>(partial_sums)) {}

  template <typename F>
  void each(uint32_t count, const F& f) const {
    if (count == 0) return;
    each_kernel<<<blocks(count, kThreads), kThreads, 0, stream_>>>(count, f);
    check_launch();
  }

  template <typename F>
  void columns(Matrix size, uint32_t groups, const F& f) const {
    if (size.columns == 0) return;
    const uint32_t most = kMostPartialSums / (groups * F::kSums);
    if (size.columns > most) {
      throw InvalidInput("a layer has " + std::to_string(size.columns) +
                         " columns; a GPU adds up at most " + std::to_string(most));
    }
    Tiling tiling = tile(size, groups, F::kWidth);
    set_chunks(tiling, groups, kRowsToSum, kBlocksToSum);
    if (tiling.chunks > most / size.columns) {
      tiling.chunks = most / size.columns;
      tiling.rows_of_chunk = blocks(tiling.group.rows, tiling.chunks);
    }
    columns_kernel<<<grid(tiling, groups), kThreads, 0, stream_>>>(tiling, f, partials_);
    check_launch();
    finish_columns_kernel<<<blocks(size.columns, kFinishColumns),
                            dim3(kFinishColumns, kFinishLines), 0, stream_>>>(
        size.columns, groups, tiling.chunks, f, partials_);
    check_launch();
  }

  template <typename F>
  void rows_of_columns(Matrix size, uint32_t groups, const F& f) const {
    if (size.size() == 0) return;
    Tiling tiling = tile(size, groups, F::kWidth);
    set_chunks(tiling, groups, kRowsToApply, kBlocksToApply);
    rows_of_columns_kernel<<<grid(tiling, groups), kThreads, 0, stream_>>>(tiling, f);
    check_launch();
  }

  template <typename F>
  void rows(Matrix size, const F& f) const {
    if (size.size() == 0) return;
    rows_kernel<<<size.rows, kRowThreads, 0, stream_>>>(size.columns, f);
    check_launch();
  }

  template <typename F>
  void row_states(Matrix size, const F& f) const {
    if (size.size() == 0) return;
    row_states_kernel<<<size.rows, kRowThreads, 0, stream_>>>(size.columns, f);
    check_launch();
  }

 private:
  // Of a thread, at least; and how many blocks fill a large device.
  static constexpr uint32_t kRowsToSum = 8, kBlocksToSum = 528;
  static constexpr uint32_t kRowsToApply = 8, kBlocksToApply = 1056;
  static constexpr uint32_t kMostPacks = 32, kLeastPacks = 8, kMostChunks = 65535;

  static Tiling tile(Matrix size, uint32_t groups, int width) {
    Tiling tiling;
    tiling.group = {size.rows / groups, size.columns};
    tiling.packs = size.columns / static_cast<uint32_t>(width);
    // No thread idles where a power of two divides them.
    uint32_t even = 1;
    while (even < kMostPacks && tiling.packs % (2 * even) == 0) even *= 2;
    tiling.packs_of_block = even >= kLeastPacks ? even : std::min(tiling.packs, kMostPacks);
    tiling.tiles = blocks(tiling.packs, tiling.packs_of_block);
    return tiling;
  }
  static void set_chunks(Tiling& tiling, uint32_t groups, uint32_t least_rows,
                         uint32_t most_blocks) {
    const uint32_t lines = kThreads / tiling.packs_of_block;
    const uint32_t wanted = blocks(tiling.group.rows, lines * least_rows);
    const uint32_t room = std::max(1u, most_blocks / (tiling.tiles * groups));
    const uint32_t chunks = std::clamp(std::min(wanted, room), 1u, kMostChunks);
    // Whole lines: else some would have a row more.
    tiling.rows_of_chunk = blocks(blocks(tiling.group.rows, chunks), lines) * lines;
    tiling.chunks = std::max(1u, blocks(tiling.group.rows, tiling.rows_of_chunk));
  }
  static dim3 grid(const Tiling& tiling, uint32_t groups) {
    return {tiling.tiles, tiling.chunks, groups};
  }
  static uint32_t blocks(uint32_t count, uint32_t of) { return (count + of - 1) / of; }
  static void check_launch() {
    const cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess) return;
    const std::string text =
        std::string("a kernel could not be started: ") + cudaGetErrorString(status);
    if (status == cudaErrorMemoryAllocation) throw OutOfDeviceMemory(text);
    throw DeviceError(text);
  }

  const cudaStream_t stream_;
  float* const partials_;
};

}  // namespace outrigger::nn::cuda
