#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

class NormStep final : public Step {
 public:
  explicit NormStep(const NormGroup& group) : group_(group) {}
  int output() const override { return group_.output; }

  void plan_forward(Compilation& c) override {
    const Layer& norm = c.layer(group_.norm);
    measures_ = c.training() && !norm.frozen;
    epsilon_ = std::get<BatchNorm>(norm.operation).epsilon;
    groups_ = static_cast<uint32_t>(c.options().groups);
    statistics_apart_ = static_cast<uint32_t>(c.average_bytes() / sizeof(float));
    scale_shift_at_ = c.parameters_at(group_.norm);
    averages_at_ = c.averages_at(group_.norm);
    statistics_at_ = c.statistics_offset(group_.norm);
    plan_activation(c);
    in_ = c.value(norm.inputs[0]);
    c.use(in_.data);
    if (group_.residual >= 0) {
      residual_ = c.value(group_.residual);
      c.use(residual_.data);
    }
    // Those who wrote x and have its sums left them where the mean goes.
    summed_ = measures_ && in_.sums;
    mean_inverse_ = summed_ ? in_.sums : c.create(two_rows());
    c.use(mean_inverse_);
    c.create(c.value(group_.output));
    out_ = c.value(group_.output);
    size_ = c.matrix(out_);
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(group_.output);
    c.use(out_.gradient);
    c.use(in_.data);
    c.use(mean_inverse_);
    if (relu_ && group_.residual >= 0) c.use(out_.data);
    sums_ = c.create(two_rows());
    trains_ = c.trains(group_.norm);
    gradient_at_ = c.gradient_offset(group_.norm);
    if (slopes_train_) slopes_gradient_at_ = c.gradient_offset(group_.activation);
    // First the residual's, for that is written first: both may be one value.
    if (group_.residual >= 0) residual_target_ = c.gradient(c.value(group_.residual));
    target_ = c.gradient(c.value(c.layer(group_.norm).inputs[0]));
  }
  void forward(const Run& run) const override {
    const ConstArray x = array(run, in_, in_.data);
    auto* mean_inverse = run.at<float>(mean_inverse_);
    if (measures_) {
      measure(run, x, mean_inverse);
    } else {
      run.kernels().prepare_norm(run.weight(averages_at_), epsilon_, mean_inverse, groups_,
                                 size_.columns);
    }
    NormForward norm;
    norm.groups = groups_;
    norm.x = x;
    if (group_.residual >= 0) norm.residual = array(run, residual_, residual_.data);
    norm.mean_inverse = mean_inverse;
    norm.scale_shift = run.weight(scale_shift_at_);
    norm.relu = relu_;
    norm.slopes = prelu_ ? run.weight(slopes_at_) : nullptr;
    norm.y = array(run, out_, out_.data);
    run.kernels().norm_forward(norm, size_);
  }
  void backward(const Run& run) const override {
    NormBackward norm;
    norm.groups = groups_;
    norm.x = array(run, in_, in_.data);
    norm.dy = array(run, out_, out_.gradient);
    norm.residual = group_.residual >= 0;
    if (relu_ && norm.residual) norm.y = array(run, out_, out_.data);
    norm.residual_gradient = array(run, out_, residual_target_.buffer);
    norm.add_residual = residual_target_.add;
    norm.mean_inverse = run.at<float>(mean_inverse_);
    norm.scale_shift = run.weight(scale_shift_at_);
    norm.relu = relu_;
    norm.slopes = prelu_ ? run.weight(slopes_at_) : nullptr;
    norm.measured = measures_;
    norm.sums = run.at<float>(sums_);
    if (trains_) norm.scale_shift_gradient = run.gradients + gradient_at_;
    if (prelu_ && slopes_train_) norm.slopes_gradient = run.gradients + slopes_gradient_at_;
    norm.dx = array(run, in_, target_.buffer);
    norm.add = target_.add;
    run.kernels().norm_backward(norm, size_);
  }

 private:
  size_t two_rows() const {
    return 2 * static_cast<size_t>(groups_ * in_.extent.channels) * sizeof(float);
  }
  void measure(const Run& run, ConstArray x, float* mean_inverse) const {
    const NormMeasure wanted{.x = x,
                             .groups = groups_,
                             .epsilon = epsilon_,
                             .statistics = run.statistics + statistics_at_,
                             .statistics_apart = statistics_apart_,
                             .mean_inverse = mean_inverse};
    if (summed_) {
      run.kernels().finish_measure(wanted, size_);
    } else {
      run.kernels().measure(wanted, size_);
    }
  }
  void plan_activation(Compilation& c) {
    if (group_.activation < 0) return;
    relu_ = std::holds_alternative<Relu>(c.layer(group_.activation).operation);
    prelu_ = !relu_;
    if (!prelu_) return;
    slopes_at_ = c.parameters_at(group_.activation);
    slopes_train_ = c.trains(group_.activation);
  }

  const NormGroup group_;
  bool measures_ = false, summed_ = false, relu_ = false, prelu_ = false, trains_ = false,
       slopes_train_ = false;
  float epsilon_ = 0;
  size_t scale_shift_at_ = 0, averages_at_ = 0, slopes_at_ = 0;
  int64_t statistics_at_ = 0, gradient_at_ = 0, slopes_gradient_at_ = 0;
  Value in_, residual_, out_;
  Matrix size_;
  uint32_t groups_ = 1, statistics_apart_ = 0;
  BufferId mean_inverse_, sums_;
  GradientTarget target_, residual_target_;
};

}  // namespace

std::unique_ptr<Step> make_norm(const NormGroup& group) {
  return std::make_unique<NormStep>(group);
}

}  // namespace outrigger::nn::cuda
