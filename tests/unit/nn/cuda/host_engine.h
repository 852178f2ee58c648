#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "nn/cuda/engine.h"
#include "nn/program.h"

/// An engine whose device is the host: the kernels' own arithmetic in loops, so that everything of
/// the CUDA backend but the library calls and the launches is tested where there is no GPU.
namespace outrigger::nn::cuda::testing {

/// Told of every convolution that a program asks the library for.
using SeenConvolution = std::function<void(const ConvolutionRequest&)>;

/// What the library of a host engine plans: nothing, or every forward pass.
enum class HostPlans : uint8_t { kNone, kForward };

/// Gives `most_pinned` bytes of pinned memory in all its life.
std::shared_ptr<Engine> make_host_engine(SeenConvolution seen = {}, size_t most_pinned = SIZE_MAX,
                                         HostPlans plans = HostPlans::kNone);

/// Where ranks in threads of one process meet; they sum in the order of the ranks.
class HostRanks {
 public:
  explicit HostRanks(int size) : values_(static_cast<size_t>(size)), barrier_(size) {}
  void sum(int rank, std::span<float> values);

 private:
  std::vector<std::span<float>> values_;
  std::barrier<> barrier_;
};

/// The CUDA backend's programs on it; without `ranks` its residents cannot join others.
/// `recompute`: as CudaOptions'.
std::unique_ptr<Backend> make_host_backend(HostRanks* ranks = nullptr, bool recompute = false,
                                           HostPlans plans = HostPlans::kNone);

/// The kernels alone. Static.
const Kernels& host_kernels();

}  // namespace outrigger::nn::cuda::testing
