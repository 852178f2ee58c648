#pragma once

#include <functional>
#include <memory>

#include "nn/cuda/engine.h"
#include "nn/program.h"

/// An engine whose device is the host: the kernels' own arithmetic in loops, so that everything of
/// the CUDA backend but the library calls and the launches is tested where there is no GPU.
namespace outrigger::nn::cuda::testing {

/// Told of every convolution that a program asks the library for.
using SeenConvolution = std::function<void(const ConvolutionShape&, ConvolutionPass)>;

std::shared_ptr<Engine> make_host_engine(SeenConvolution seen = {});

/// The CUDA backend's programs on it.
std::unique_ptr<Backend> make_host_backend();

/// The kernels alone. Static.
const Kernels& host_kernels();

}  // namespace outrigger::nn::cuda::testing
