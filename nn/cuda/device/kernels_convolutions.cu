#include "nn/cuda/device/launcher.cuh"

namespace outrigger::nn::cuda {

template class ConvolutionKernels<CudaLauncher>;

}  // namespace outrigger::nn::cuda
