#include "nn/cuda/backend.h"

#include <cuda_runtime_api.h>

#include <array>

#include "nn/cuda/compiler.h"
#include "nn/cuda/device/engine.h"
#include "nn/cuda/resident.h"

namespace outrigger::nn::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<Engine> engine, bool recompute)
      : engine_(std::move(engine)), compiler_(engine_, recompute) {}
  std::string name() const override { return "cuda"; }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool&) const override {
    return compiler_.compile(graph, options);
  }
  std::unique_ptr<Resident> make_resident(const Graph& graph,
                                          const ResidentOptions& options) const override {
    return std::make_unique<CudaResident>(graph, options, engine_);
  }
  std::vector<MemoryUse> memory() const { return engine_->memory(); }
  std::vector<MemoryUse> kept_by_layers() const { return compiler_.kept_by_layers(); }

 private:
  const std::shared_ptr<Engine> engine_;
  const Compiler compiler_;
};

}  // namespace

bool is_built() { return true; }

std::string bus_id(int device) {
  std::array<char, 32> text{};
  const bool known =
      cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device) == cudaSuccess;
  return known ? text.data() : "";
}

std::vector<MemoryUse> memory_uses(const Backend& backend) {
  const auto* mine = dynamic_cast<const CudaBackend*>(&backend);
  return mine == nullptr ? std::vector<MemoryUse>() : mine->memory();
}

std::vector<MemoryUse> kept_by_layers(const Backend& backend) {
  const auto* mine = dynamic_cast<const CudaBackend*>(&backend);
  return mine == nullptr ? std::vector<MemoryUse>() : mine->kept_by_layers();
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  return std::make_unique<CudaBackend>(open_engine(options), options.recompute);
}

}  // namespace outrigger::nn::cuda
