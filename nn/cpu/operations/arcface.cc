#include <algorithm>
#include <cmath>
#include <variant>

#include "nn/angular_margin.h"
#include "nn/cpu/onednn/gemm.h"
#include "nn/cpu/operations/operation.h"
#include "nn/cpu/operations/slices.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

/// Logits {m, classes} = scale * cos(feature, class vector), with the margin on the own class. One
/// task for each slice of the classes (and of the features' gradient), whatever the number of
/// threads.
///
/// With x' = x / |x|, w' = w / |w| and s = d loss / d cos: dx = (sum s w' - (sum s cos) x') / |x|
/// over the classes, and dw = (sum s x' - (sum s cos) w') / |w| over the samples.
class ArcFaceOperation final : public Operation {
 public:
  explicit ArcFaceOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void announce(Compilation& c) override {
    Value &in = c.input_of(layer_), &out = c.value(layer_);
    operation_ = std::get<ArcFace>(c.layer(layer_).operation);
    batch_ = c.options().batch;
    ins_ = in.channels;
    classes_ = operation_.classes;
    class_slices_ = Slices(classes_);
    in_slices_ = Slices(ins_);
    range_ = c.parameter(layer_, 0);
    trains_ = c.training() && c.trains(layer_, 0);
    margin_ = c.training();
    in.whole = out.whole = out.whole_gradient = in.whole_gradient = true;
    if (c.training()) in.kept = true;
  }

  void plan_forward(Compilation& c) override;
  void plan_backward(Compilation& c) override;

  void load(const LoadArguments& a) const override {
    const float* weights = a.parameters.data() + range_.offset;
    std::copy_n(weights, ins_ * classes_, reinterpret_cast<float*>(a.weights + weights_));
    auto* inverse = reinterpret_cast<float*>(a.weights + class_inverse_);
    for (int64_t k = 0; k < classes_; ++k) inverse[k] = inverse_length(weights + k * ins_);
  }

 private:
  float inverse_length(const float* vector) const {
    double sum = 0;
    for (int64_t i = 0; i < ins_; ++i) sum += double{vector[i]} * vector[i];
    return static_cast<float>(1.0 / std::max(std::sqrt(sum), double{kLeastLength}));
  }
  void begin_samples(const Run& run, const Task& task) const;
  void forward_slice(const Run& run, int slice) const;
  void backward_classes(const Run& run, int slice) const;
  void backward_features(const Run& run, int slice) const;
  void slopes(const Run& run, int slice) const;

  const int layer_;
  ArcFace operation_;
  int64_t batch_ = 0, ins_ = 0, classes_ = 0;
  Slices class_slices_, in_slices_;
  Range range_;
  bool trains_ = false, margin_ = false;
  size_t weights_ = 0, class_inverse_ = 0;
  BufferId in_, out_, dx_, gradient_;
  BufferId inverse_, own_, own_slope_, cosines_;  // {m}, {m}, {m}, {m, classes}: on the tape
  BufferId by_class_, by_feature_,
      sample_sums_;  // s / |w|, s / |x| {m, classes}; sum s cos {slices, m}
};

void ArcFaceOperation::plan_forward(Compilation& c) {
  in_ = c.input_of(layer_).data;
  out_ = c.create(c.value(layer_));
  weights_ = c.reserve_weights(static_cast<size_t>(ins_ * classes_) * sizeof(float));
  class_inverse_ = c.reserve_weights(static_cast<size_t>(classes_) * sizeof(float));
  const int64_t number = sizeof(float);
  inverse_ = c.buffers().tape(number);
  own_ = c.buffers().tape(sizeof(int32_t));
  own_slope_ = c.buffers().tape(number);
  cosines_ = c.buffers().tape(number * classes_);
  c.forward().add({PieceKind::kBlock,
                   layer_,
                   0,
                   {in_, inverse_, own_, own_slope_},
                   [this](const Run& run, const Task& task) { begin_samples(run, task); }});
  c.forward().add({PieceKind::kWhole,
                   layer_,
                   class_slices_.count(),
                   {in_, out_, inverse_, own_, own_slope_, cosines_},
                   [this](const Run& run, const Task& task) { forward_slice(run, task.index); }});
}

void ArcFaceOperation::begin_samples(const Run& run, const Task& task) const {
  for (int64_t i = task.first; i < task.first + task.samples; ++i) {
    *run.at<float>(inverse_, i) = inverse_length(run.at<float>(in_, i));
    *run.at<float>(own_slope_, i) = 1.0f;
    *run.at<int32_t>(own_, i) =
        margin_ && !run.in->labels.empty() ? run.in->labels[static_cast<size_t>(i)] : -1;
  }
}

void ArcFaceOperation::forward_slice(const Run& run, int slice) const {
  const int64_t begin = class_slices_.first(slice), size = class_slices_.size(slice);
  float* cosines = run.at<float>(cosines_);
  onednn::gemm({batch_, size, ins_}, {run.at<float>(in_), ins_, false},
               {run.weight<float>(weights_) + begin * ins_, ins_, true},
               {cosines + begin, classes_, false});
  const auto* class_inverse = run.weight<float>(class_inverse_);
  for (int64_t i = 0; i < batch_; ++i) {
    const float inverse = *run.at<float>(inverse_, i);
    const int64_t own = *run.at<int32_t>(own_, i);
    float* row = cosines + i * classes_;
    float* y = run.at<float>(out_, i);
    for (int64_t k = begin; k < begin + size; ++k) {
      row[k] = row[k] * inverse * class_inverse[k];
      y[k] = operation_.scale * row[k];
    }
    if (own < begin || own >= begin + size) continue;
    const MarginCosine with_margin = add_angular_margin(row[own], operation_.margin);
    y[own] = operation_.scale * with_margin.value;
    *run.at<float>(own_slope_, i) = with_margin.slope;
  }
}

void ArcFaceOperation::plan_backward(Compilation& c) {
  gradient_ = c.gradient(layer_, c.value(layer_));
  const int64_t row = classes_ * int64_t{sizeof(float)};
  by_class_ = c.buffers().whole(row);
  by_feature_ = c.buffers().whole(row);
  sample_sums_ = c.buffers().whole_fixed(class_slices_.count() * batch_ * int64_t{sizeof(float)});
  c.backward().add({PieceKind::kWhole,
                    layer_,
                    class_slices_.count(),
                    {in_, gradient_, by_class_, by_feature_, sample_sums_, cosines_},
                    [this](const Run& run, const Task& task) { backward_classes(run, task.index); },
                    c.trained({layer_})});
  if (!c.input_of(layer_).wants_gradient) return;
  dx_ = c.create_gradient(c.input_of(layer_));
  c.backward().add(
      {PieceKind::kWhole,
       layer_,
       in_slices_.count(),
       {in_, by_class_, sample_sums_, dx_},
       [this](const Run& run, const Task& task) { backward_features(run, task.index); }});
}

// What the slice's cosines want, by |x| and by |w|, and each sample's sum of s cos.
void ArcFaceOperation::slopes(const Run& run, int slice) const {
  const int64_t begin = class_slices_.first(slice), end = begin + class_slices_.size(slice);
  const auto* class_inverse = run.weight<float>(class_inverse_);
  for (int64_t i = 0; i < batch_; ++i) {
    const float inverse = *run.at<float>(inverse_, i);
    const int64_t own = *run.at<int32_t>(own_, i);
    const float *dy = run.at<float>(gradient_, i), *cosines = run.at<float>(cosines_, i);
    float *by_class = run.at<float>(by_class_, i), *by_feature = run.at<float>(by_feature_, i);
    double sum = 0;
    for (int64_t k = begin; k < end; ++k) {
      const float slope =
          dy[k] * operation_.scale * (k == own ? *run.at<float>(own_slope_, i) : 1.0f);
      by_class[k] = slope * class_inverse[k];
      by_feature[k] = slope * inverse;
      sum += double{slope} * cosines[k];
    }
    run.at<float>(sample_sums_)[slice * batch_ + i] = static_cast<float>(sum);
  }
}

void ArcFaceOperation::backward_classes(const Run& run, int slice) const {
  slopes(run, slice);
  if (!trains_) return;
  const int64_t begin = class_slices_.first(slice), size = class_slices_.size(slice);
  float* gradients = run.back->gradients.data() + range_.offset + begin * ins_;
  onednn::gemm({size, ins_, batch_}, {run.at<float>(by_feature_) + begin, classes_, true},
               {run.at<float>(in_), ins_, false}, {gradients, ins_, false});
  for (int64_t k = begin; k < begin + size; ++k) {
    const float inverse = run.weight<float>(class_inverse_)[k];
    const float* w = run.weight<float>(weights_) + k * ins_;
    double sum = 0;  // of s cos over the samples: s / |w| is kept, cos as it is
    for (int64_t i = 0; i < batch_; ++i)
      sum += double{run.at<float>(by_class_, i)[k]} * run.at<float>(cosines_, i)[k];
    float* row = gradients + (k - begin) * ins_;
    for (int64_t i = 0; i < ins_; ++i) row[i] = inverse * (row[i] - static_cast<float>(sum) * w[i]);
  }
}

void ArcFaceOperation::backward_features(const Run& run, int slice) const {
  const int64_t begin = in_slices_.first(slice), size = in_slices_.size(slice);
  onednn::gemm({batch_, size, classes_}, {run.at<float>(by_class_), classes_, false},
               {run.weight<float>(weights_) + begin, ins_, false},
               {run.at<float>(dx_) + begin, ins_, false});
  for (int64_t i = 0; i < batch_; ++i) {
    double sum = 0;
    for (int s = 0; s < class_slices_.count(); ++s)
      sum += double{run.at<float>(sample_sums_)[s * batch_ + i]};
    const float inverse = *run.at<float>(inverse_, i);
    const float by_x = static_cast<float>(sum) * inverse;
    const float* x = run.at<float>(in_, i) + begin;
    float* dx = run.at<float>(dx_, i) + begin;
    for (int64_t j = 0; j < size; ++j) dx[j] = inverse * (dx[j] - by_x * x[j]);
  }
}

}  // namespace

std::unique_ptr<Operation> make_arcface(int layer) {
  return std::make_unique<ArcFaceOperation>(layer);
}

}  // namespace outrigger::nn::cpu
