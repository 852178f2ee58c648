#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "nn/cuda/kernels/kernels.h"

namespace outrigger::nn::cuda {

/// The kernels on a stream. `partial_sums` is kPartialSumBytes of the device's memory that they use
/// between two launches; both must outlive them.
std::unique_ptr<Kernels> make_kernels(cudaStream_t stream, void* partial_sums);

/// In how many parts sums over columns may be left between two launches; they share the memory.
inline constexpr uint32_t kMostPartialSums = 3u << 21;
inline constexpr size_t kPartialSumBytes = size_t{kMostPartialSums} * sizeof(float);

}  // namespace outrigger::nn::cuda
