#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {

bool is_built() { return false; }

std::string bus_id(int) { return ""; }

std::vector<MemoryUse> memory_uses(const Backend&) { return {}; }

std::optional<int64_t> free_memory(const Backend&) { return std::nullopt; }

std::vector<MemoryUse> kept_by_layers(const Backend&) { return {}; }

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions&) {
  throw NoDevice(
      "this build has no CUDA; use an image or a build that has it (make setup-cuda, then make "
      "build-cuda), or train on the CPU");
}

}  // namespace outrigger::nn::cuda
