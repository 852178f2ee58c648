#include "nn/cuda/device/launcher.cuh"

namespace outrigger::nn::cuda {

template class FeatureKernels<CudaLauncher>;

}  // namespace outrigger::nn::cuda
