#include "nn/loss.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"

namespace outrigger::nn {
namespace {

// Of one sample's logits.
struct Softmax {
  double largest = 0;
  double sum = 0;  // of exp(z - largest)
  double mean = 0;
  size_t best = 0;  // where the largest is, the first of equals
};

Softmax add_up(std::span<const float> logits) {
  Softmax softmax;
  const auto best = std::max_element(logits.begin(), logits.end());
  softmax.best = static_cast<size_t>(best - logits.begin());
  softmax.largest = *best;
  for (const float logit : logits) {
    softmax.sum += std::exp(logit - softmax.largest);
    softmax.mean += logit;
  }
  softmax.mean /= static_cast<double>(logits.size());
  return softmax;
}

// With smoothing s over K classes the target is (1 - s) on the label plus s / K everywhere, so
// loss = log sum exp(z) - (1 - s) * z[label] - s * mean(z), and gradient = softmax(z) - target.
double loss_of(const Softmax& softmax, float logit, double smoothing) {
  return softmax.largest + std::log(softmax.sum) - (1.0 - smoothing) * logit -
         smoothing * softmax.mean;
}

void gradient_of(const Softmax& softmax, std::span<const float> logits, size_t label,
                 double smoothing, std::span<float> gradient) {
  const auto classes = static_cast<double>(logits.size());
  for (size_t k = 0; k < logits.size(); ++k) {
    const double target = smoothing / classes + (k == label ? 1.0 - smoothing : 0.0);
    gradient[k] = static_cast<float>(std::exp(logits[k] - softmax.largest) / softmax.sum - target);
  }
}

}  // namespace

LossResult softmax_cross_entropy(const ConstTensorView& logits, std::span<const int32_t> labels,
                                 float smoothing, const TensorView& gradient) {
  ensure(logits.type == ElementType::kFloat32 && gradient.type == ElementType::kFloat32 &&
             logits.shape.size() == 2 && gradient.shape == logits.shape,
         "logits and their gradient are float32 {m, K}");
  ensure(labels.size() == static_cast<size_t>(logits.shape[0]), "every sample has a label");
  const auto classes = static_cast<size_t>(logits.shape[1]);
  LossResult result;
  for (size_t n = 0; n < labels.size(); ++n) {
    const auto label = static_cast<size_t>(labels[n]);
    ensure(labels[n] >= 0 && label < classes, "a label is one of the classes");
    const auto row = logits.as<float>().subspan(n * classes, classes);
    const Softmax softmax = add_up(row);
    gradient_of(softmax, row, label, smoothing, gradient.as<float>().subspan(n * classes, classes));
    result.loss_sum += loss_of(softmax, row[label], smoothing);
    if (softmax.best == label) ++result.correct;
  }
  return result;
}

LossResult sample_cross_entropy(std::span<const float> logits, int32_t label) {
  const auto index = static_cast<size_t>(label);
  ensure(label >= 0 && index < logits.size(), "a label is one of the classes");
  const Softmax softmax = add_up(logits);
  return {loss_of(softmax, logits[index], 0), softmax.best == index ? 1 : 0};
}

}  // namespace outrigger::nn
