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

// A block adds a tile of 32 columns over one chunk of rows, a warp reading one row of it at a time.
constexpr int kTileColumns = 32, kTileRows = 8;

template <typename F>
__global__ void columns_kernel(Matrix group, uint32_t rows_per_chunk, F f, Sums<float>* partials) {
  __shared__ float shared[3][kTileRows][kTileColumns];
  const uint32_t column = blockIdx.x * kTileColumns + threadIdx.x;
  const uint32_t begin = blockIdx.z * group.rows;
  const uint32_t first = begin + blockIdx.y * rows_per_chunk;
  const uint32_t last = min(first + rows_per_chunk, begin + group.rows);
  Sums<float> sums;
  if (column < group.columns) {
    for (uint32_t row = first + threadIdx.y; row < last; row += kTileRows) {
      const Sums<float> term = f.term(blockIdx.z, row, column);
      sums.a += term.a;
      sums.b += term.b;
      sums.c += term.c;
    }
  }
  shared[0][threadIdx.y][threadIdx.x] = sums.a;
  shared[1][threadIdx.y][threadIdx.x] = sums.b;
  shared[2][threadIdx.y][threadIdx.x] = sums.c;
  __syncthreads();
  if (threadIdx.y != 0 || column >= group.columns) return;
  for (int y = 1; y < kTileRows; ++y) {
    sums.a += shared[0][y][threadIdx.x];
    sums.b += shared[1][y][threadIdx.x];
    sums.c += shared[2][y][threadIdx.x];
  }
  partials[(blockIdx.z * gridDim.y + blockIdx.y) * group.columns + column] = sums;
}

// In the order of the chunks, so that sums are the same every time.
template <typename F>
__global__ void finish_columns_kernel(uint32_t columns, uint32_t groups, uint32_t chunks, F f,
                                      const Sums<float>* partials) {
  const uint32_t column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= columns) return;
  for (uint32_t group = 0; group < groups; ++group) {
    Sums<double> sums;
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Sums<float> part = partials[(group * chunks + chunk) * columns + column];
      sums.a += static_cast<double>(part.a);
      sums.b += static_cast<double>(part.b);
      sums.c += static_cast<double>(part.c);
    }
    f.finish(group, column, sums);
  }
}

/// Sums over columns that know nothing of groups.
template <typename F>
struct OneGroup {
  F f;
  OUTRIGGER_BOTH Sums<float> term(uint32_t, uint32_t row, uint32_t column) const {
    return f.term(row, column);
  }
  OUTRIGGER_BOTH void finish(uint32_t, uint32_t column, const Sums<double>& sums) const {
    f.finish(column, sums);
  }
};

constexpr int kRowThreads = 128;

template <typename F>
__global__ void rows_kernel(uint32_t columns, F f) {
  __shared__ float warps[kRowThreads / 32];
  const uint32_t row = blockIdx.x;
  float sum = 0;
  for (uint32_t c = threadIdx.x; c < columns; c += kRowThreads) sum += f.term(row, c).a;
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lane);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kRowThreads / 32; ++warp) sum += warps[warp];
  const Sums<float> sums{sum, 0, 0};
  for (uint32_t c = threadIdx.x; c < columns; c += kRowThreads) f.finish(row, c, sums);
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
      : stream_(stream), partials_(static_cast<Sums<float>*>(partial_sums)) {}

  template <typename F>
  void each(uint32_t count, const F& f) const {
    if (count == 0) return;
    each_kernel<<<blocks(count, kThreads), kThreads, 0, stream_>>>(count, f);
    check_launch();
  }

  template <typename F>
  void columns(Matrix size, const F& f) const {
    grouped_columns(size, 1, OneGroup<F>{f});
  }

  template <typename F>
  void grouped_columns(Matrix size, uint32_t groups, const F& f) const {
    if (size.columns == 0) return;
    if (size.columns > kMostColumns / groups) {
      throw InvalidInput("a layer has " + std::to_string(size.columns) +
                         " outputs; a GPU adds up at most " +
                         std::to_string(kMostColumns / groups));
    }
    const Matrix group{size.rows / groups, size.columns};
    // Enough chunks to fill a large device, and no more than a few hundred rows ask for.
    const uint32_t tiles = blocks(size.columns, kTileColumns);
    uint32_t chunks =
        std::min(blocks(group.rows, kTileRows * 16), std::max(1u, 2048 / (tiles * groups)));
    chunks = std::max(1u, std::min(chunks, kMostColumns / (size.columns * groups)));
    const uint32_t rows_per_chunk = blocks(group.rows, chunks);
    columns_kernel<<<dim3(tiles, chunks, groups), dim3(kTileColumns, kTileRows), 0, stream_>>>(
        group, rows_per_chunk, f, partials_);
    check_launch();
    finish_columns_kernel<<<blocks(size.columns, kThreads), kThreads, 0, stream_>>>(
        size.columns, groups, chunks, f, partials_);
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
  static uint32_t blocks(uint32_t count, uint32_t of) { return (count + of - 1) / of; }
  static void check_launch() {
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess)
      throw DeviceError(std::string("a kernel could not be started: ") +
                        cudaGetErrorString(status));
  }

  const cudaStream_t stream_;
  Sums<float>* const partials_;
};

extern template class MapKernels<CudaLauncher>;
extern template class NormKernels<CudaLauncher>;
extern template class FeatureKernels<CudaLauncher>;
extern template class TrainingKernels<CudaLauncher>;

}  // namespace outrigger::nn::cuda
