#include "nn/cuda/device/plan_timer.h"

#include <algorithm>

#include "common/error.h"
#include "nn/cuda/device/check.h"

namespace outrigger::nn::cuda {
namespace {

// Of a map as float32, whatever it is: results may be wider than what goes in.
size_t bytes_of(uint32_t samples, uint32_t channels, int height, int width) {
  return size_t{samples} * channels * static_cast<size_t>(height) * static_cast<size_t>(width) *
         sizeof(float);
}
size_t bytes_out(const ConvolutionShape& s) {
  return bytes_of(s.samples, s.out_channels, s.out_height, s.out_width);
}

}  // namespace

PlanTimer::Memory PlanTimer::take(size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // else the next launch would report it
    return nullptr;
  }
  // Numbers that are none would be as fast; numbers that overflow might not be.
  check(cudaMemset(memory, 0, bytes), "clearing memory of the device");
  return Memory(memory);
}

PlanTimer::Event PlanTimer::make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event");
  return Event(event);
}

PlanTimer::PlanTimer(cudaStream_t stream, const ConvolutionShape& shape)
    : stream_(stream),
      map_out_bytes_(bytes_out(shape) / sizeof(float) * element_size(shape.type)),
      map_in_(take(bytes_of(shape.samples, shape.in_channels, shape.in_height, shape.in_width))),
      map_out_(take(bytes_out(shape))),
      weights_(take(shape.weights() * sizeof(float))),
      bias_(take(shape.out_channels * sizeof(float))),
      sums_(take(2 * shape.out_channels * sizeof(float))),
      begin_(make_event()),
      end_(make_event()) {}

ConvolutionArrays PlanTimer::arrays(ConvolutionPass pass) const {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {.a = map_in_.get(),
              .b = weights_.get(),
              .result = map_out_.get(),
              .bias = bias_.get(),
              .sums = static_cast<float*>(sums_.get())};
    case ConvolutionPass::kInputGradient:
      return {.a = map_out_.get(), .b = weights_.get(), .result = map_in_.get()};
    case ConvolutionPass::kWeightGradient:
      return {.a = map_out_.get(), .b = map_in_.get(), .result = weights_.get()};
  }
  impossible("a pass of a convolution");
}

// Each copy reads one half and writes the other.
std::optional<float> PlanTimer::time_pass(bool writes) const {
  const size_t half = map_out_bytes_ / 2;
  auto* map = static_cast<std::byte*>(map_out_.get());
  return time(0, [&](void*) {
    for (int copy = 0; copy < (writes ? 2 : 1); ++copy) {
      if (cudaMemcpyAsync(map + half, map, half, cudaMemcpyDeviceToDevice, stream_) != cudaSuccess)
        return false;
    }
    return true;
  });
}

std::optional<float> PlanTimer::time(size_t workspace_bytes,
                                     const std::function<bool(void* workspace)>& run) const {
  constexpr int kRuns = 3;
  const Memory workspace = workspace_bytes > 0 ? take(workspace_bytes) : nullptr;
  if (workspace_bytes > 0 && workspace == nullptr) return std::nullopt;
  // Memory is cleared on the default stream, which this one does not wait for.
  check(cudaDeviceSynchronize(), "waiting for the device");
  if (!run(workspace.get())) return std::nullopt;  // loads what it needs
  float least = 0;
  for (int i = 0; i < kRuns; ++i) {
    check(cudaEventRecord(begin_.get(), stream_), "timing a plan");
    if (!run(workspace.get())) return std::nullopt;
    check(cudaEventRecord(end_.get(), stream_), "timing a plan");
    check(cudaEventSynchronize(end_.get()), "timing a plan");
    float took = 0;
    check(cudaEventElapsedTime(&took, begin_.get(), end_.get()), "timing a plan");
    least = i == 0 ? took : std::min(least, took);
  }
  return least;
}

}  // namespace outrigger::nn::cuda
