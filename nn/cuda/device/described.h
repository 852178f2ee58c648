#pragma once

#include <memory>
#include <string>

#include "nn/cuda/backend.h"
#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

/// cuDNN's plan (convolution.h) for a GPU that is not here, described in JSON as cuDNN writes it
/// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): a plan that cannot run. For tests of what cuDNN
/// has.
std::unique_ptr<PlannedConvolution> plan_for_described(const std::string& device,
                                                       const CudaOptions& options,
                                                       const ConvolutionRequest& request);

}  // namespace outrigger::nn::cuda
