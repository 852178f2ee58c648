#include <algorithm>

#include "nn/dropout.h"
#include "nn/reference/layer.h"

namespace outrigger::nn::reference {
namespace {

size_t value_count(const Run& run, const Extent& extent) {
  return static_cast<size_t>(run.samples * extent.size());
}

// NaN passes through, as in PyTorch.
class ReluCode final : public LayerCode {
 public:
  explicit ReluCode(const Place& place) : extent_(place.in) {}

  void forward(const Run& run, const Forward& values) const override {
    for (size_t i = 0; i < value_count(run, extent_); ++i) {
      const float x = values.inputs[0][i];
      values.output[i] = x <= 0 ? 0.0f : x;
    }
  }
  void backward(const Run& run, const Backward& values) const override {
    if (values.input_gradients[0].empty()) return;
    for (size_t i = 0; i < value_count(run, extent_); ++i) {
      if (!(values.inputs[0][i] <= 0)) values.input_gradients[0][i] += values.output_gradient[i];
    }
  }

 private:
  const Extent extent_;
};

class PreluCode final : public LayerCode {
 public:
  explicit PreluCode(const Place& place) : extent_(place.in) {}

  int64_t scratch_doubles() const override { return extent_.channels; }

  void forward(const Run& run, const Forward& values) const override {
    for (size_t i = 0; i < value_count(run, extent_); ++i) {
      const float x = values.inputs[0][i];
      values.output[i] = x > 0 ? x : x * values.parameters[channel(i)];
    }
  }
  void backward(const Run& run, const Backward& values) const override {
    std::fill(values.scratch.begin(), values.scratch.begin() + extent_.channels, 0.0);
    for (size_t i = 0; i < value_count(run, extent_); ++i) {
      const float x = values.inputs[0][i];
      const float dy = values.output_gradient[i];
      if (!(x > 0)) values.scratch[channel(i)] += double{x} * dy;
      if (!values.input_gradients[0].empty()) {
        values.input_gradients[0][i] += x > 0 ? dy : dy * values.parameters[channel(i)];
      }
    }
    for (size_t c = 0; c < values.parameter_gradients.size(); ++c) {
      values.parameter_gradients[c] = static_cast<float>(values.scratch[c]);
    }
  }

 private:
  size_t channel(size_t i) const { return i % static_cast<size_t>(extent_.channels); }
  const Extent extent_;
};

class AddCode final : public LayerCode {
 public:
  void forward(const Run&, const Forward& values) const override {
    for (size_t i = 0; i < values.inputs[0].size(); ++i) {
      values.output[i] = values.inputs[0][i] + values.inputs[1][i];
    }
  }
  void backward(const Run&, const Backward& values) const override {
    for (const auto& gradient : values.input_gradients) {
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += values.output_gradient[i];
    }
  }
};

// visit(index in {n, H, W, C}, index in {n, C, H, W}) for every value.
template <typename Visit>
void for_each_in_both_orders(int64_t samples, const Extent& extent, const Visit& visit) {
  const auto area = static_cast<size_t>(extent.area());
  const auto channels = static_cast<size_t>(extent.channels);
  for (size_t n = 0; n < static_cast<size_t>(samples); ++n) {
    const size_t first = n * area * channels;
    for (size_t place = 0; place < area; ++place) {
      for (size_t c = 0; c < channels; ++c) {
        visit(first + place * channels + c, first + c * area + place);
      }
    }
  }
}

class DropoutCode final : public LayerCode {
 public:
  DropoutCode(const Place& place, const Dropout& operation)
      : extent_(place.in),
        seed_(place.seed),
        index_(place.index),
        probability_(operation.probability),
        drops_(place.training && operation.probability > 0) {}

  // The factors, {n, C, H, W}.
  int64_t saved_floats(int64_t samples) const override {
    return drops_ ? samples * extent_.size() : 0;
  }

  void forward(const Run& run, const Forward& values) const override {
    const auto size = static_cast<size_t>(extent_.size());
    for (size_t n = 0; drops_ && n < static_cast<size_t>(run.samples); ++n) {
      dropout_factors({seed_, run.slots[n], index_}, probability_,
                      values.saved.subspan(n * size, size));
    }
    for_each_in_both_orders(run.samples, extent_, [&](size_t i, size_t torch) {
      values.output[i] = values.inputs[0][i] * (drops_ ? values.saved[torch] : 1.0f);
    });
  }
  void backward(const Run& run, const Backward& values) const override {
    if (values.input_gradients[0].empty()) return;
    for_each_in_both_orders(run.samples, extent_, [&](size_t i, size_t torch) {
      values.input_gradients[0][i] +=
          values.output_gradient[i] * (drops_ ? values.saved[torch] : 1.0f);
    });
  }

 private:
  const Extent extent_;
  const uint64_t seed_;
  const int index_;
  const float probability_;
  const bool drops_;
};

class FlattenCode final : public LayerCode {
 public:
  explicit FlattenCode(const Place& place) : extent_(place.in) {}

  void forward(const Run& run, const Forward& values) const override {
    for_each_in_both_orders(run.samples, extent_, [&](size_t i, size_t torch) {
      values.output[torch] = values.inputs[0][i];
    });
  }
  void backward(const Run& run, const Backward& values) const override {
    if (values.input_gradients[0].empty()) return;
    for_each_in_both_orders(run.samples, extent_, [&](size_t i, size_t torch) {
      values.input_gradients[0][i] += values.output_gradient[torch];
    });
  }

 private:
  const Extent extent_;
};

}  // namespace

std::unique_ptr<LayerCode> make_relu(const Place& place) {
  return std::make_unique<ReluCode>(place);
}
std::unique_ptr<LayerCode> make_prelu(const Place& place) {
  return std::make_unique<PreluCode>(place);
}
std::unique_ptr<LayerCode> make_add() { return std::make_unique<AddCode>(); }
std::unique_ptr<LayerCode> make_dropout(const Place& place, const Dropout& operation) {
  return std::make_unique<DropoutCode>(place, operation);
}
std::unique_ptr<LayerCode> make_flatten(const Place& place) {
  return std::make_unique<FlattenCode>(place);
}

}  // namespace outrigger::nn::reference
