#include <algorithm>

#include "nn/reference/layer.h"

namespace outrigger::nn::reference {
namespace {

// The window of each output place over the input.
struct Window {
  Extent in;
  Extent out;
  int64_t kernel;
  int64_t stride;
  int64_t padding;

  template <typename Pool>
  Window(const Place& place, const Pool& pool)
      : in(place.in),
        out(place.out),
        kernel(pool.kernel),
        stride(pool.stride),
        padding(pool.padding) {}

  // visit(output index, sample, row, column, channel)
  template <typename Visit>
  void for_each_output(int64_t samples, const Visit& visit) const {
    size_t index = 0;
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t row = 0; row < out.height; ++row) {
        for (int64_t column = 0; column < out.width; ++column) {
          for (int64_t c = 0; c < out.channels; ++c, ++index) visit(index, n, row, column, c);
        }
      }
    }
  }

  // visit(input index) for what of the window lies in the input
  template <typename Visit>
  void for_each_input(int64_t n, int64_t row, int64_t column, int64_t channel,
                      const Visit& visit) const {
    const int64_t top = row * stride - padding, left = column * stride - padding;
    for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + kernel, in.height); ++y) {
      for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + kernel, in.width); ++x) {
        visit(static_cast<size_t>(((n * in.height + y) * in.width + x) * in.channels + channel));
      }
    }
  }
};

// Of equal values the first in row order wins, and a NaN wins over all, as in PyTorch.
class MaxPoolCode final : public LayerCode {
 public:
  MaxPoolCode(const Place& place, const MaxPool& operation) : window_(place, operation) {}

  void forward(const Run& run, const Forward& values) const override {
    window_.for_each_output(
        run.samples, [&](size_t out, int64_t n, int64_t row, int64_t column, int64_t c) {
          values.output[out] = values.inputs[0][largest(values.inputs[0], n, row, column, c)];
        });
  }
  void backward(const Run& run, const Backward& values) const override {
    if (values.input_gradients[0].empty()) return;
    window_.for_each_output(
        run.samples, [&](size_t out, int64_t n, int64_t row, int64_t column, int64_t c) {
          values.input_gradients[0][largest(values.inputs[0], n, row, column, c)] +=
              values.output_gradient[out];
        });
  }

 private:
  size_t largest(std::span<const float> input, int64_t n, int64_t row, int64_t column,
                 int64_t c) const {
    constexpr size_t kNone = ~size_t{0};
    size_t best = kNone;
    window_.for_each_input(n, row, column, c, [&](size_t in) {
      if (best == kNone || input[in] > input[best] || input[in] != input[in]) best = in;
    });
    return best;
  }

  const Window window_;
};

class AveragePoolCode final : public LayerCode {
 public:
  AveragePoolCode(const Place& place, const AveragePool& operation)
      : window_(place, operation),
        area_(static_cast<double>(operation.kernel * operation.kernel)) {}

  void forward(const Run& run, const Forward& values) const override {
    window_.for_each_output(run.samples, [&](size_t out, int64_t n, int64_t row, int64_t column,
                                             int64_t c) {
      double sum = 0;
      window_.for_each_input(n, row, column, c, [&](size_t in) { sum += values.inputs[0][in]; });
      values.output[out] = static_cast<float>(sum / area_);
    });
  }
  void backward(const Run& run, const Backward& values) const override {
    if (values.input_gradients[0].empty()) return;
    window_.for_each_output(
        run.samples, [&](size_t out, int64_t n, int64_t row, int64_t column, int64_t c) {
          const auto share = static_cast<float>(values.output_gradient[out] / area_);
          window_.for_each_input(n, row, column, c,
                                 [&](size_t in) { values.input_gradients[0][in] += share; });
        });
  }

 private:
  const Window window_;
  const double area_;
};

class GlobalAveragePoolCode final : public LayerCode {
 public:
  explicit GlobalAveragePoolCode(const Place& place) : in_(place.in) {}

  void forward(const Run& run, const Forward& values) const override {
    for (int64_t n = 0; n < run.samples; ++n) {
      for (int64_t c = 0; c < in_.channels; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < in_.area(); ++i) sum += values.inputs[0][index(n, i, c)];
        values.output[static_cast<size_t>(n * in_.channels + c)] =
            static_cast<float>(sum / static_cast<double>(in_.area()));
      }
    }
  }
  void backward(const Run& run, const Backward& values) const override {
    if (values.input_gradients[0].empty()) return;
    const auto area = static_cast<float>(in_.area());
    for (int64_t n = 0; n < run.samples; ++n) {
      for (int64_t c = 0; c < in_.channels; ++c) {
        const float share =
            values.output_gradient[static_cast<size_t>(n * in_.channels + c)] / area;
        for (int64_t i = 0; i < in_.area(); ++i) values.input_gradients[0][index(n, i, c)] += share;
      }
    }
  }

 private:
  size_t index(int64_t n, int64_t i, int64_t c) const {
    return static_cast<size_t>((n * in_.area() + i) * in_.channels + c);
  }
  const Extent in_;
};

}  // namespace

std::unique_ptr<LayerCode> make_max_pool(const Place& place, const MaxPool& operation) {
  return std::make_unique<MaxPoolCode>(place, operation);
}
std::unique_ptr<LayerCode> make_average_pool(const Place& place, const AveragePool& operation) {
  return std::make_unique<AveragePoolCode>(place, operation);
}
std::unique_ptr<LayerCode> make_global_average_pool(const Place& place) {
  return std::make_unique<GlobalAveragePoolCode>(place);
}

}  // namespace outrigger::nn::reference
