#pragma once

#include <cstring>
#include <vector>

#include "host_queues.h"
#include "nn/cuda/engine.h"
#include "nn/cuda/kernels/kernels_over.inc.h"

namespace outrigger::nn::cuda::testing {

/// A forward pass as a library plans it, in loops on the host's queue: sums stay float32 up to the
/// end of the epilogue, and are rounded once. It spoils its work space.
class HostConvolution final : public PlannedConvolution {
 public:
  HostConvolution(HostQueues& queues, const ConvolutionRequest& request)
      : queues_(queues), request_(request) {}
  size_t workspace_bytes() const override { return 64; }
  Stored result_type() const override { return request_.shape.type; }
  void run(const ConvolutionArrays& arrays) override {
    queues_.push(Queue::kWork, [request = request_, arrays] { run_now(request, arrays); });
  }

 private:
  static std::vector<float> widened(Stored type, const void* data, size_t count) {
    std::vector<float> values(count);
    with_type(type, [&]<typename T>(T) {
      for (size_t i = 0; i < count; ++i) values[i] = to_float(static_cast<const T*>(data)[i]);
    });
    return values;
  }
  static size_t size_of(const ConvolutionShape& s, uint32_t channels, int height, int width) {
    return size_t{s.samples} * channels * static_cast<size_t>(height * width);
  }

  static void run_now(const ConvolutionRequest& request, const ConvolutionArrays& arrays) {
    const ConvolutionShape& s = request.shape;
    std::memset(arrays.workspace, 0xFF, 64);
    const auto x = widened(s.type, arrays.a, size_of(s, s.in_channels, s.in_height, s.in_width));
    const auto weights = widened(s.type, arrays.b, s.weights());
    std::vector<float> y(size_of(s, s.out_channels, s.out_height, s.out_width));
    const ConvolveKernel<float> convolve{x.data(), weights.data(), y.data(), s};
    for (uint32_t i = 0; i < y.size(); ++i) convolve(i);
    with_type(s.type,
              [&]<typename T>(T) { finish(request, arrays, y, static_cast<T*>(arrays.result)); });
  }

  template <typename T>
  static void finish(const ConvolutionRequest& request, const ConvolutionArrays& arrays,
                     const std::vector<float>& y, T* result) {
    const Epilogue epilogue = request.epilogue;
    const uint32_t channels = request.shape.out_channels;
    const bool relu = epilogue == Epilogue::kBiasRelu;
    const bool sums = epilogue == Epilogue::kStatistics;
    if (sums) std::memset(arrays.sums, 0, 2 * channels * sizeof(float));
    for (size_t i = 0; i < y.size(); ++i) {
      float value = y[i];
      if (has_bias(epilogue)) value += to_float(static_cast<const T*>(arrays.bias)[i % channels]);
      if (relu && value <= 0) value = 0;
      store(result + i, value);
      if (!sums) continue;
      const float stored = to_float(result[i]);
      arrays.sums[i % channels] += stored;
      arrays.sums[channels + i % channels] += stored * stored;
    }
  }

  HostQueues& queues_;
  const ConvolutionRequest request_;
};

}  // namespace outrigger::nn::cuda::testing
