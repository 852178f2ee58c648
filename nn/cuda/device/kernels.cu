#include "nn/cuda/device/launch.h"
#include "nn/cuda/device/launcher.cuh"

namespace outrigger::nn::cuda {
namespace {

/// The launcher first: the kernels refer to it.
class LaunchedKernels {
 public:
  LaunchedKernels(cudaStream_t stream, void* partial_sums) : launcher_(stream, partial_sums) {}

 protected:
  const CudaLauncher launcher_;
};

class StreamKernels final : private LaunchedKernels, public KernelsOver<CudaLauncher> {
 public:
  StreamKernels(cudaStream_t stream, void* partial_sums)
      : LaunchedKernels(stream, partial_sums),
        KernelsOver<CudaLauncher>(LaunchedKernels::launcher_) {}
};

}  // namespace

std::unique_ptr<Kernels> make_kernels(cudaStream_t stream, void* partial_sums) {
  return std::make_unique<StreamKernels>(stream, partial_sums);
}

}  // namespace outrigger::nn::cuda
