#pragma once

#include <memory>

#include "nn/cuda/backend.h"
#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

/// The engine on a GPU: one stream, cuBLAS and cuDNN on it. Throws NoDevice.
std::shared_ptr<Engine> open_engine(const CudaOptions& options);

}  // namespace outrigger::nn::cuda
