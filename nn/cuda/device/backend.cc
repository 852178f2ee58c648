#include "nn/cuda/backend.h"

#include <cuda_runtime_api.h>

#include <array>

#include "nn/cuda/compiler.h"
#include "nn/cuda/device/check.h"
#include "nn/cuda/device/engine.h"
#include "nn/cuda/pinned_source.h"
#include "nn/cuda/resident.h"
#include "nn/cuda/work_space.h"

namespace outrigger::nn::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options)
      : engine_(open_engine(options)), compiler_(engine_, options.recompute) {
    if (options.most_pinned > 0) pinned_ = PinnedSource::create(engine_, options.most_pinned);
  }
  std::string name() const override { return "cuda"; }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool&) const override {
    return compiler_.compile(graph, options);
  }
  std::shared_ptr<WorkSpace> make_work_space() const override {
    return std::make_shared<CudaWorkSpace>(engine_);
  }
  std::shared_ptr<MemorySource> input_memory() const override { return pinned_; }
  bool unpacks_int8() const override { return true; }
  std::unique_ptr<Resident> make_resident(const Graph& graph,
                                          const ResidentOptions& options) const override {
    return std::make_unique<CudaResident>(graph, options, engine_);
  }
  std::vector<MemoryUse> memory() const { return engine_->memory(); }
  int64_t free_memory() const {
    const auto lock = engine_->enter();
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for the device's free memory");
    return static_cast<int64_t>(free);
  }
  std::vector<MemoryUse> kept_by_layers() const { return compiler_.kept_by_layers(); }

 private:
  const std::shared_ptr<Engine> engine_;
  const Compiler compiler_;
  std::shared_ptr<PinnedSource> pinned_;  // null: none is to be pinned
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

std::optional<int64_t> free_memory(const Backend& backend) {
  const auto* mine = dynamic_cast<const CudaBackend*>(&backend);
  return mine == nullptr ? std::nullopt : std::optional(mine->free_memory());
}

std::vector<MemoryUse> kept_by_layers(const Backend& backend) {
  const auto* mine = dynamic_cast<const CudaBackend*>(&backend);
  return mine == nullptr ? std::vector<MemoryUse>() : mine->kept_by_layers();
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace outrigger::nn::cuda
