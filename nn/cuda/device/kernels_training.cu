#include "nn/cuda/device/launcher.cuh"

namespace outrigger::nn::cuda {

template class TrainingKernels<CudaLauncher>;

}  // namespace outrigger::nn::cuda
