#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "nn/cuda/collective.h"
#include "nn/resident.h"

namespace outrigger::nn::cuda {

/// Meets the other ranks over NCCL; `engine` is the stream whose work sums wait for, and which
/// waits for sums. Null where rank 0 finds no NCCL: all ranks get the same answer. Throws RankLost
/// where they do not meet, DeviceError where this rank alone has none. The stream must outlive it.
std::unique_ptr<Collective> join_with_nccl(const RankGroup& ranks, cudaStream_t engine);

}  // namespace outrigger::nn::cuda
