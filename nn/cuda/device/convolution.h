#pragma once

#include <cudnn.h>

#include <memory>

#include "nn/cuda/backend.h"
#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

/// cuDNN's plan for one pass of a convolution, by its heuristics; null where it has none that the
/// options allow. The handle must outlive it.
std::unique_ptr<PlannedConvolution> plan_with_cudnn(cudnnHandle_t handle,
                                                    const CudaOptions& options,
                                                    const ConvolutionShape& shape,
                                                    ConvolutionPass pass);

}  // namespace outrigger::nn::cuda
