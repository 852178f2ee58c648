#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>

#include "nn/cuda/backend.h"
#include "nn/cuda/engine.h"
#include "nn/cuda/plan_cache.h"

namespace outrigger::nn::cuda {

/// How the fastest of several plans is found: by what was timed before, else on this stream.
struct Tuning {
  PlanCache* known = nullptr;  // null: nothing is timed, cuDNN's heuristics decide
  cudaStream_t stream = nullptr;
};

/// cuDNN's plan for one pass of a convolution; null where it has none that the options allow. With
/// an epilogue and timing, null too where it takes longer than the convolution alone and a pass
/// over what that wrote. The handle must outlive it, and works on the tuning's stream.
std::unique_ptr<PlannedConvolution> plan_with_cudnn(cudnnHandle_t handle,
                                                    const CudaOptions& options,
                                                    const ConvolutionRequest& request,
                                                    const Tuning& tuning);

}  // namespace outrigger::nn::cuda
