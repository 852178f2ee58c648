#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

/// Features, weights and sums are float32; in bfloat16 the factors are rounded before they are
/// multiplied.
class LinearStep final : public Step {
 public:
  explicit LinearStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    rows_ = c.samples();
    inputs_ = in_.extent.channels;
    outputs_ = out_.extent.channels;
    bias_ = std::get<Linear>(c.layer(layer_).operation).bias;
    factor_ = c.map_type();
    parameters_at_ = c.parameters_at(layer_);
    if (!rounds()) return;
    rounded_x_ = c.create(bytes(rows_ * inputs_));
    rounded_weights_at_ = c.reserve(bytes(inputs_ * outputs_));
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    trains_ = c.trains(layer_);
    gradient_at_ = c.gradient_offset(layer_);
    if (trains_) c.use(rounds() ? rounded_x_ : in_.data);
    if (rounds()) rounded_dy_ = c.create(bytes(rows_ * outputs_));
    Value& in = c.value(c.layer(layer_).inputs[0]);
    target_ = c.gradient(in);
    if (target_.add) fresh_ = c.create(c.bytes(in));
  }
  void load(Engine& engine, std::byte* weights) const override {
    if (!rounds()) return;
    engine.kernels().convert({Stored::kFloat32, weights + parameters_at_},
                             {factor_, weights + rounded_weights_at_},
                             static_cast<uint32_t>(inputs_ * outputs_), false);
  }
  void forward(const Run& run) const override {
    ConstArray x = array(run, in_, in_.data);
    if (rounds()) x = rounded(run, x, rounded_x_, rows_ * inputs_);
    const Array y = array(run, out_, out_.data);
    run.engine->multiply({.a = x,
                          .b = weights(run),
                          .c = y,
                          .rows = rows_,
                          .columns = outputs_,
                          .inner = inputs_,
                          .transpose_b = true});
    if (bias_)
      run.kernels().add_bias(y, run.weight(parameters_at_) + inputs_ * outputs_, false, size());
  }
  void backward(const Run& run) const override {
    const ConstArray exact = array(run, out_, out_.gradient);
    const ConstArray dy = rounds() ? rounded(run, exact, rounded_dy_, rows_ * outputs_) : exact;
    if (trains_) {
      float* gradient = run.gradients + gradient_at_;
      const ConstArray x = rounds() ? ConstArray(factor_, run.at(rounded_x_))
                                    : ConstArray(array(run, in_, in_.data));
      run.engine->multiply({.a = dy,
                            .b = x,
                            .c = {Stored::kFloat32, gradient},
                            .rows = outputs_,
                            .columns = inputs_,
                            .inner = rows_,
                            .transpose_a = true});
      if (bias_) run.kernels().sum_columns(exact, gradient + inputs_ * outputs_, size());
    }
    if (!target_.buffer) return;
    const Array dx = array(run, in_, target_.buffer);
    const Array result = fresh_ ? array(run, in_, fresh_) : dx;
    run.engine->multiply({.a = dy,
                          .b = weights(run),
                          .c = result,
                          .rows = rows_,
                          .columns = inputs_,
                          .inner = outputs_});
    if (fresh_) run.kernels().convert(result, dx, static_cast<uint32_t>(rows_ * inputs_), true);
  }

 private:
  bool rounds() const { return factor_ != Stored::kFloat32; }
  size_t bytes(int64_t count) const { return static_cast<size_t>(count) * element_size(factor_); }
  Matrix size() const { return {static_cast<uint32_t>(rows_), static_cast<uint32_t>(outputs_)}; }
  ConstArray weights(const Run& run) const {
    return {factor_, run.weight<void>(rounds() ? rounded_weights_at_ : parameters_at_)};
  }
  ConstArray rounded(const Run& run, ConstArray from, BufferId to, int64_t count) const {
    const Array target{factor_, run.at<void>(to)};
    run.kernels().convert(from, target, static_cast<uint32_t>(count), false);
    return target;
  }

  const int layer_;
  Value in_, out_;
  int64_t rows_ = 0, inputs_ = 0, outputs_ = 0, gradient_at_ = 0;
  bool bias_ = false, trains_ = false;
  Stored factor_ = Stored::kFloat32;
  size_t parameters_at_ = 0, rounded_weights_at_ = 0;
  BufferId rounded_x_, rounded_dy_, fresh_;
  GradientTarget target_;
};

}  // namespace

std::unique_ptr<Step> make_linear(int layer) { return std::make_unique<LinearStep>(layer); }

}  // namespace outrigger::nn::cuda
