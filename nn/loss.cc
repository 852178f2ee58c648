#include "nn/loss.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"

namespace outrigger::nn {
namespace {

// One sample. With smoothing s over K classes the target is (1 - s) on the label plus s / K
// everywhere, so loss = log sum exp(z) - (1 - s) * z[label] - s * mean(z), and gradient =
// softmax(z) - target.
double sample_loss(std::span<const float> logits, size_t label, double smoothing,
                   std::span<float> gradient) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0, mean = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - largest);
    mean += logit;
  }
  const auto classes = static_cast<double>(logits.size());
  mean /= classes;
  for (size_t k = 0; k < logits.size(); ++k) {
    const double target = smoothing / classes + (k == label ? 1.0 - smoothing : 0.0);
    gradient[k] = static_cast<float>(std::exp(logits[k] - largest) / sum - target);
  }
  return largest + std::log(sum) - (1.0 - smoothing) * logits[label] - smoothing * mean;
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
    result.loss_sum +=
        sample_loss(row, label, smoothing, gradient.as<float>().subspan(n * classes, classes));
    if (static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin()) == label)
      ++result.correct;
  }
  return result;
}

}  // namespace outrigger::nn
