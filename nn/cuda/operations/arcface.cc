#include <string>

#include "common/error.h"
#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

/// Cosines as one product of unit rows; in bfloat16 those are rounded, cosines and sums are
/// float32. With x' = x / |x|: d cos / dx = (w' - cos x') / |x|, and the like for w, so a gradient
/// is the product with the other side's unit rows, less its part along the own one.
class ArcFaceStep final : public Step {
 public:
  explicit ArcFaceStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    operation_ = std::get<ArcFace>(c.layer(layer_).operation);
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    rows_ = c.samples();
    inputs_ = in_.extent.channels;
    check_size();
    factor_ = c.map_type();
    margin_ = c.training();
    parameters_at_ = c.parameters_at(layer_);
    unit_weights_at_ = c.reserve(bytes(operation_.classes * inputs_));
    inverse_weights_at_ = c.reserve(static_cast<size_t>(operation_.classes) * sizeof(float));
    unit_ = c.create(bytes(rows_ * inputs_));
    inverse_ = c.create(static_cast<size_t>(rows_) * sizeof(float));
    cosines_ = c.create(static_cast<size_t>(rows_ * operation_.classes) * sizeof(float));
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    c.use(unit_);
    c.use(inverse_);
    c.use(cosines_);
    slopes_ = c.create(bytes(rows_ * operation_.classes));
    trains_ = c.trains(layer_);
    gradient_at_ = c.gradient_offset(layer_);
    if (trains_)
      of_weights_ = c.create(static_cast<size_t>(operation_.classes * inputs_) * sizeof(float));
    target_ = c.gradient(c.value(c.layer(layer_).inputs[0]));
    if (target_.buffer) of_units_ = c.create(static_cast<size_t>(rows_ * inputs_) * sizeof(float));
  }
  void load(Engine& engine, std::byte* weights) const override {
    engine.kernels().unit_rows(
        {Stored::kFloat32, weights + parameters_at_}, {factor_, weights + unit_weights_at_},
        reinterpret_cast<float*>(weights + inverse_weights_at_), matrix(operation_.classes));
  }
  void forward(const Run& run) const override {
    const Array unit{factor_, run.at<void>(unit_)};
    run.kernels().unit_rows(array(run, in_, in_.data), unit, run.at<float>(inverse_),
                            matrix(rows_));
    run.engine->multiply({.a = unit,
                          .b = unit_weights(run),
                          .c = {Stored::kFloat32, run.at<void>(cosines_)},
                          .rows = rows_,
                          .columns = operation_.classes,
                          .inner = inputs_,
                          .transpose_b = true});
    run.kernels().margin_logits(run.at<float>(cosines_), labels(run), operation_.margin,
                                operation_.scale, run.at<float>(out_.data), logits());
  }
  void backward(const Run& run) const override {
    const Array slopes{factor_, run.at<void>(slopes_)};
    run.kernels().margin_slopes(run.at<float>(cosines_), labels(run), operation_.margin,
                                operation_.scale, run.at<float>(out_.gradient), slopes, logits());
    if (trains_) weight_gradient(run, slopes);
    if (!target_.buffer) return;
    const ConstArray unit(factor_, run.at(unit_));
    auto* of_units = run.at<float>(of_units_);
    run.engine->multiply({.a = slopes,
                          .b = unit_weights(run),
                          .c = {Stored::kFloat32, of_units},
                          .rows = rows_,
                          .columns = inputs_,
                          .inner = operation_.classes});
    run.kernels().unit_rows_backward(of_units, unit, run.at<float>(inverse_),
                                     array(run, in_, target_.buffer), target_.add, matrix(rows_));
  }

 private:
  // Kernels count weights in 32 bits.
  void check_size() const {
    constexpr int64_t kMost = int64_t{1} << 32;
    if (operation_.classes * inputs_ < kMost) return;
    throw InvalidInput(
        std::to_string(operation_.classes) + " classes of " + std::to_string(inputs_) +
        " features are too many for a GPU: ArcFace has 2^32 weights or more there; " +
        std::to_string((kMost - 1) / inputs_) + " classes may be at most");
  }
  void weight_gradient(const Run& run, ConstArray slopes) const {
    auto* of_weights = run.at<float>(of_weights_);
    run.engine->multiply({.a = slopes,
                          .b = {factor_, run.at(unit_)},
                          .c = {Stored::kFloat32, of_weights},
                          .rows = operation_.classes,
                          .columns = inputs_,
                          .inner = rows_,
                          .transpose_a = true});
    run.kernels().unit_rows_backward(of_weights, unit_weights(run), run.weight(inverse_weights_at_),
                                     {Stored::kFloat32, run.gradients + gradient_at_}, false,
                                     matrix(operation_.classes));
  }
  size_t bytes(int64_t count) const { return static_cast<size_t>(count) * element_size(factor_); }
  Matrix matrix(int64_t rows) const {
    return {static_cast<uint32_t>(rows), static_cast<uint32_t>(inputs_)};
  }
  Matrix logits() const {
    return {static_cast<uint32_t>(rows_), static_cast<uint32_t>(operation_.classes)};
  }
  const int32_t* labels(const Run& run) const { return margin_ ? run.labels : nullptr; }
  ConstArray unit_weights(const Run& run) const {
    return {factor_, run.weight<void>(unit_weights_at_)};
  }

  const int layer_;
  ArcFace operation_;
  Value in_, out_;
  int64_t rows_ = 0, inputs_ = 0, gradient_at_ = 0;
  bool margin_ = false, trains_ = false;
  Stored factor_ = Stored::kFloat32;
  size_t parameters_at_ = 0, unit_weights_at_ = 0, inverse_weights_at_ = 0;
  BufferId unit_, inverse_, cosines_, slopes_, of_units_, of_weights_;
  GradientTarget target_;
};

}  // namespace

std::unique_ptr<Step> make_arcface(int layer) { return std::make_unique<ArcFaceStep>(layer); }

}  // namespace outrigger::nn::cuda
