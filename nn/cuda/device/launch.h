#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "nn/cuda/kernels/kernels.h"

namespace outrigger::nn::cuda {

/// The kernels on a stream. `partial_sums` is kPartialSumBytes of the device's memory that they use
/// between two launches; both must outlive them.
std::unique_ptr<Kernels> make_kernels(cudaStream_t stream, void* partial_sums);

/// Columns of any sum over columns at most; they share the partial sums.
inline constexpr uint32_t kMostColumns = 1u << 21;
inline constexpr size_t kPartialSumBytes = size_t{kMostColumns} * sizeof(Sums<float>);

}  // namespace outrigger::nn::cuda
