#include "nn/cuda/device/launcher.cuh"

namespace outrigger::nn::cuda {

template class NormKernels<CudaLauncher>;

}  // namespace outrigger::nn::cuda
