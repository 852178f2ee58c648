#include "nn/cuda/device/launcher.cuh"

namespace outrigger::nn::cuda {

template class MapKernels<CudaLauncher>;

}  // namespace outrigger::nn::cuda
