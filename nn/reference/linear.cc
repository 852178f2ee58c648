#include <algorithm>
#include <cmath>

#include "nn/angular_margin.h"
#include "nn/reference/layer.h"

namespace outrigger::nn::reference {
namespace {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

// Row r of a matrix of rows of `size`.
template <typename T>
std::span<T> row(std::span<T> matrix, int64_t r, int64_t size) {
  return matrix.subspan(static_cast<size_t>(r * size), static_cast<size_t>(size));
}

class LinearCode final : public LayerCode {
 public:
  LinearCode(const Place& place, const Linear& operation)
      : in_(place.in.channels), out_(operation.out_features), bias_(operation.bias) {}

  int64_t scratch_doubles() const override { return in_; }

  void forward(const Run& run, const Forward& values) const override {
    for (int64_t n = 0; n < run.samples; ++n) {
      for (int64_t o = 0; o < out_; ++o) {
        const double bias = bias_ ? values.parameters[static_cast<size_t>(out_ * in_ + o)] : 0.0f;
        values.output[static_cast<size_t>(n * out_ + o)] = static_cast<float>(
            dot(row(values.inputs[0], n, in_), row(values.parameters, o, in_)) + bias);
      }
    }
  }

  void backward(const Run& run, const Backward& values) const override {
    if (!values.parameter_gradients.empty()) weight_gradient(run, values);
    if (values.input_gradients[0].empty()) return;
    const auto sums = values.scratch.first(static_cast<size_t>(in_));
    for (int64_t n = 0; n < run.samples; ++n) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t o = 0; o < out_; ++o) {
        add_scaled(values.output_gradient[static_cast<size_t>(n * out_ + o)],
                   row(values.parameters, o, in_), sums);
      }
      const auto gradient = row(values.input_gradients[0], n, in_);
      for (size_t i = 0; i < sums.size(); ++i) gradient[i] += static_cast<float>(sums[i]);
    }
  }

 private:
  static void add_scaled(double factor, std::span<const float> values, std::span<double> sums) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += factor * values[i];
  }

  void weight_gradient(const Run& run, const Backward& values) const {
    const auto sums = values.scratch.first(static_cast<size_t>(in_));
    for (int64_t o = 0; o < out_; ++o) {
      std::fill(sums.begin(), sums.end(), 0.0);
      double bias = 0;
      for (int64_t n = 0; n < run.samples; ++n) {
        const double dy = values.output_gradient[static_cast<size_t>(n * out_ + o)];
        add_scaled(dy, row(values.inputs[0], n, in_), sums);
        bias += dy;
      }
      std::copy(sums.begin(), sums.end(), row(values.parameter_gradients, o, in_).begin());
      if (bias_)
        values.parameter_gradients[static_cast<size_t>(out_ * in_ + o)] = static_cast<float>(bias);
    }
  }

  const int64_t in_, out_;
  const bool bias_;
};

// logit = scale * cos(x, w), with the margin on the sample's own class. With x' = x / |x| and w' =
// w / |w|: d cos / dx = (w' - cos x') / |x|, and the like for w.
class ArcFaceCode final : public LayerCode {
 public:
  ArcFaceCode(const Place& place, const ArcFace& operation)
      : in_(place.in.channels), operation_(operation), margin_(place.training) {}

  // 1 / |x| {n}, 1 / |w| {classes}, cosines {n, classes}
  int64_t saved_floats(int64_t samples) const override {
    return samples + operation_.classes + samples * operation_.classes;
  }
  int64_t scratch_doubles() const override { return in_; }

  void forward(const Run& run, const Forward& values) const override {
    const int64_t classes = operation_.classes;
    const Saved saved(values.saved, run.samples, classes);
    for (int64_t n = 0; n < run.samples; ++n)
      saved.features[index(n)] = inverse_length(row(values.inputs[0], n, in_));
    for (int64_t k = 0; k < classes; ++k)
      saved.weights[index(k)] = inverse_length(row(values.parameters, k, in_));
    for (int64_t n = 0; n < run.samples; ++n) {
      for (int64_t k = 0; k < classes; ++k) {
        const double product = dot(row(values.inputs[0], n, in_), row(values.parameters, k, in_));
        const auto cosine =
            static_cast<float>(product * saved.features[index(n)] * saved.weights[index(k)]);
        saved.cosines[index(n * classes + k)] = cosine;
        values.output[index(n * classes + k)] =
            operation_.scale *
            (own_class(run, n, k) ? add_angular_margin(cosine, operation_.margin).value : cosine);
      }
    }
  }

  void backward(const Run& run, const Backward& values) const override {
    const Saved saved(values.saved, run.samples, operation_.classes);
    if (!values.parameter_gradients.empty()) {
      for (int64_t k = 0; k < operation_.classes; ++k) {
        const auto w = row(values.parameters, k, in_);
        start(values);
        for (int64_t n = 0; n < run.samples; ++n) {
          add_cosine_gradient(slope(run, saved, values, n, k), row(values.inputs[0], n, in_),
                              saved.features[index(n)], w, saved.weights[index(k)], values.scratch);
        }
        std::copy_n(values.scratch.begin(), in_, row(values.parameter_gradients, k, in_).begin());
      }
    }
    if (values.input_gradients[0].empty()) return;
    for (int64_t n = 0; n < run.samples; ++n) {
      const auto x = row(values.inputs[0], n, in_);
      start(values);
      for (int64_t k = 0; k < operation_.classes; ++k) {
        add_cosine_gradient(slope(run, saved, values, n, k), row(values.parameters, k, in_),
                            saved.weights[index(k)], x, saved.features[index(n)], values.scratch);
      }
      const auto gradient = row(values.input_gradients[0], n, in_);
      for (size_t i = 0; i < gradient.size(); ++i)
        gradient[i] += static_cast<float>(values.scratch[i]);
    }
  }

 private:
  // The pieces of Forward::saved and Backward::saved.
  template <typename T>
  struct Saved {
    Saved(std::span<T> all, int64_t samples, int64_t classes)
        : features(all.first(index(samples))),
          weights(all.subspan(index(samples), index(classes))),
          cosines(all.subspan(index(samples + classes), index(samples * classes))) {}
    std::span<T> features, weights, cosines;
  };

  static size_t index(int64_t i) { return static_cast<size_t>(i); }
  static float inverse_length(std::span<const float> vector) {
    return static_cast<float>(1.0 / std::max(std::sqrt(dot(vector, vector)), double{kLeastLength}));
  }
  bool own_class(const Run& run, int64_t n, int64_t k) const {
    return margin_ && !run.labels.empty() && run.labels[index(n)] == k;
  }
  void start(const Backward& values) const { std::fill_n(values.scratch.begin(), in_, 0.0); }

  // d loss / d cosine
  double slope(const Run& run, const Saved<const float>& saved, const Backward& values, int64_t n,
               int64_t k) const {
    const int64_t place = n * operation_.classes + k;
    const double margin_slope =
        own_class(run, n, k)
            ? add_angular_margin(saved.cosines[index(place)], operation_.margin).slope
            : 1.0;
    return values.output_gradient[index(place)] * operation_.scale * margin_slope;
  }

  // sums += factor * d cos(other, own) / d own
  static void add_cosine_gradient(double factor, std::span<const float> other, double other_inverse,
                                  std::span<const float> own, double own_inverse,
                                  std::span<double> sums) {
    const double cosine = dot(other, own) * other_inverse * own_inverse;
    for (size_t i = 0; i < own.size(); ++i) {
      sums[i] += factor * own_inverse * (other[i] * other_inverse - cosine * own[i] * own_inverse);
    }
  }

  const int64_t in_;
  const ArcFace operation_;
  const bool margin_;
};

}  // namespace

std::unique_ptr<LayerCode> make_linear(const Place& place, const Linear& operation) {
  return std::make_unique<LinearCode>(place, operation);
}
std::unique_ptr<LayerCode> make_arcface(const Place& place, const ArcFace& operation) {
  return std::make_unique<ArcFaceCode>(place, operation);
}

}  // namespace outrigger::nn::reference
