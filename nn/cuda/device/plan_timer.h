#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

/// Times plans of one convolution on memory of its own, which goes when it does.
class PlanTimer {
 public:
  PlanTimer(cudaStream_t stream, const ConvolutionShape& shape);

  /// False where the device has no memory for it.
  bool ready() const { return map_in_ && map_out_ && weights_ && bias_ && sums_; }
  ConvolutionArrays arrays(ConvolutionPass pass) const;

  /// Milliseconds of one run, the least of some; nothing where it fails, or where there is no
  /// memory for its work space. `run` queues one and says whether it could.
  std::optional<float> time(size_t workspace_bytes,
                            const std::function<bool(void* workspace)>& run) const;
  /// The same of a pass over what a convolution wrote, at least: of a copy that moves as many bytes
  /// as are read there, and written where it `writes`.
  std::optional<float> time_pass(bool writes) const;

 private:
  struct Free {
    void operator()(void* memory) const { cudaFree(memory); }
  };
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  using Memory = std::unique_ptr<void, Free>;
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;
  /// Null where there is none.
  static Memory take(size_t bytes);
  static Event make_event();

  const cudaStream_t stream_;
  const size_t map_out_bytes_;  // as it is stored
  const Memory map_in_, map_out_, weights_, bias_, sums_;
  const Event begin_, end_;
};

}  // namespace outrigger::nn::cuda
