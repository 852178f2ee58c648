#include "nn/cuda/device/plan_timer.h"

#include <algorithm>

#include "nn/cuda/device/check.h"

namespace outrigger::nn::cuda {
namespace {

// As float32, whatever it is: results may be wider than what goes in.
size_t bytes_of(uint32_t samples, uint32_t channels, int height, int width) {
  return size_t{samples} * channels * static_cast<size_t>(height) * static_cast<size_t>(width) *
         sizeof(float);
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
      map_in_(take(bytes_of(shape.samples, shape.in_channels, shape.in_height, shape.in_width))),
      map_out_(
          take(bytes_of(shape.samples, shape.out_channels, shape.out_height, shape.out_width))),
      weights_(take(shape.weights() * sizeof(float))),
      begin_(make_event()),
      end_(make_event()) {}

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
