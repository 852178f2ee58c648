#include <algorithm>
#include <cmath>

#include "nn/reference/layer.h"

namespace outrigger::nn::reference {
namespace {

class BatchNormCode final : public LayerCode {
 public:
  BatchNormCode(const Place& place, const BatchNorm& operation)
      : channels_(static_cast<size_t>(place.in.channels)),
        area_(place.in.area()),
        epsilon_(operation.epsilon),
        measures_(place.batch_statistics) {}

  // mean {C}, 1 / deviation {C}
  int64_t saved_floats(int64_t) const override { return static_cast<int64_t>(2 * channels_); }
  int64_t scratch_doubles() const override { return static_cast<int64_t>(2 * channels_); }

  void forward(const Run& run, const Forward& values) const override {
    std::span<const float> averages = values.averages;
    if (measures_) {
      measure(run, values);
      averages = values.statistics;
    }
    const auto mean = values.saved.first(channels_);
    const auto scale = values.saved.last(channels_);
    for (size_t c = 0; c < channels_; ++c) {
      mean[c] = averages[c];
      scale[c] = static_cast<float>(1.0 / std::sqrt(double{averages[channels_ + c]} + epsilon_));
    }
    const size_t size = value_count(run);
    for (size_t i = 0; i < size; ++i) {
      const size_t c = i % channels_;
      const float normalized = (values.inputs[0][i] - mean[c]) * scale[c];
      values.output[i] = normalized * values.parameters[c] + values.parameters[channels_ + c];
    }
  }

  void backward(const Run& run, const Backward& values) const override {
    const auto mean = values.saved.first(channels_);
    const auto scale = values.saved.last(channels_);
    const auto sum = values.scratch.first(channels_);     // of dy
    const auto product = values.scratch.last(channels_);  // of dy * normalized x
    std::fill(values.scratch.begin(), values.scratch.end(), 0.0);
    const size_t size = value_count(run);
    const auto normalized = [&](size_t i, size_t c) {
      return (double{values.inputs[0][i]} - mean[c]) * scale[c];
    };
    for (size_t i = 0; i < size; ++i) {
      const size_t c = i % channels_;
      sum[c] += values.output_gradient[i];
      product[c] += values.output_gradient[i] * normalized(i, c);
    }
    if (!values.parameter_gradients.empty()) {
      std::copy(product.begin(), product.end(), values.parameter_gradients.begin());
      std::copy(sum.begin(), sum.end(),
                values.parameter_gradients.begin() + static_cast<std::ptrdiff_t>(channels_));
    }
    if (values.input_gradients[0].empty()) return;
    const double count = static_cast<double>(run.samples * area_);
    for (size_t i = 0; i < size; ++i) {
      const size_t c = i % channels_;
      double gradient = values.output_gradient[i];
      if (measures_) gradient -= (sum[c] + normalized(i, c) * product[c]) / count;
      values.input_gradients[0][i] +=
          static_cast<float>(gradient * values.parameters[c] * scale[c]);
    }
  }

 private:
  size_t value_count(const Run& run) const {
    return static_cast<size_t>(run.samples * area_) * channels_;
  }

  void measure(const Run& run, const Forward& values) const {
    const auto sum = values.scratch.first(channels_);
    const auto squares = values.scratch.last(channels_);
    std::fill(values.scratch.begin(), values.scratch.end(), 0.0);
    const size_t size = value_count(run);
    const double count = static_cast<double>(run.samples * area_);
    for (size_t i = 0; i < size; ++i) sum[i % channels_] += values.inputs[0][i];
    for (double& mean : sum) mean /= count;
    for (size_t i = 0; i < size; ++i) {
      const double distance = values.inputs[0][i] - sum[i % channels_];
      squares[i % channels_] += distance * distance;
    }
    for (size_t c = 0; c < channels_; ++c) {
      values.statistics[c] = static_cast<float>(sum[c]);
      values.statistics[channels_ + c] = static_cast<float>(squares[c] / count);
    }
  }

  const size_t channels_;
  const int64_t area_;
  const double epsilon_;
  const bool measures_;
};

}  // namespace

std::unique_ptr<LayerCode> make_batch_norm(const Place& place, const BatchNorm& operation) {
  return std::make_unique<BatchNormCode>(place, operation);
}

}  // namespace outrigger::nn::reference
