#include "common/random.h"
#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

/// A ReLU or PReLU that nothing before it takes in.
class ActivationStep final : public Step {
 public:
  explicit ActivationStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    size_ = c.matrix(out_);
    prelu_ = std::holds_alternative<Prelu>(c.layer(layer_).operation);
    slopes_at_ = c.parameters_at(layer_);
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    c.use(in_.data);
    trains_ = prelu_ && c.trains(layer_);
    if (trains_) gradient_at_ = c.gradient_offset(layer_);
    target_ = c.gradient(c.value(c.layer(layer_).inputs[0]));
  }
  void forward(const Run& run) const override {
    run.kernels().activate(array(run, in_, in_.data), slopes(run), array(run, out_, out_.data),
                           size_);
  }
  void backward(const Run& run) const override {
    run.kernels().activate_backward(array(run, in_, in_.data), array(run, out_, out_.gradient),
                                    slopes(run), array(run, in_, target_.buffer), target_.add,
                                    trains_ ? run.gradients + gradient_at_ : nullptr, size_);
  }

 private:
  const float* slopes(const Run& run) const { return prelu_ ? run.weight(slopes_at_) : nullptr; }

  const int layer_;
  bool prelu_ = false, trains_ = false;
  size_t slopes_at_ = 0;
  int64_t gradient_at_ = 0;
  Value in_, out_;
  Matrix size_;
  GradientTarget target_;
};

class AddStep final : public Step {
 public:
  AddStep(int layer, int output) : layer_(layer), output_(output) {}
  int output() const override { return output_; }

  void plan_forward(Compilation& c) override {
    a_ = c.value(c.layer(layer_).inputs[0]);
    b_ = c.value(c.layer(layer_).inputs[1]);
    c.use(a_.data);
    c.use(b_.data);
    c.create(c.value(output_));
    out_ = c.value(output_);
    size_ = c.matrix(out_);
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(output_);
    c.use(out_.gradient);
    if (relu()) c.use(out_.data);
    targets_.clear();
    for (const int input : c.layer(layer_).inputs) targets_.push_back(c.gradient(c.value(input)));
  }
  void forward(const Run& run) const override {
    run.kernels().add(array(run, a_, a_.data), array(run, b_, b_.data), array(run, out_, out_.data),
                      size_.size(), relu());
  }
  void backward(const Run& run) const override {
    const ConstArray dy = array(run, out_, out_.gradient);
    for (const GradientTarget& target : targets_) {
      if (!target.buffer) continue;
      const Array dx = array(run, out_, target.buffer);
      if (relu()) {
        run.kernels().activate_backward(array(run, out_, out_.data), dy, nullptr, dx, target.add,
                                        nullptr, size_);
      } else {
        run.kernels().convert(dy, dx, size_.size(), target.add);
      }
    }
  }

 private:
  bool relu() const { return output_ != layer_; }
  const int layer_, output_;
  Value a_, b_, out_;
  Matrix size_;
  std::vector<GradientTarget> targets_;
};

/// Drops in training; else hands its input on.
class DropoutStep final : public Step {
 public:
  explicit DropoutStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const float probability = std::get<Dropout>(c.layer(layer_).operation).probability;
    drops_ = c.training() && probability > 0;
    const auto key = random_key(c.options().seed, RandomUse::kDropout);
    draw_.key[0] = key[0];
    draw_.key[1] = key[1];
    draw_.layer = static_cast<uint32_t>(layer_);
    draw_.threshold = static_cast<uint32_t>(static_cast<double>(probability) * 0x1.0p32);
    draw_.kept = 1.0f / (1.0f - probability);
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    samples_ = c.samples();
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    target_ = c.gradient(c.value(c.layer(layer_).inputs[0]));
  }
  void forward(const Run& run) const override {
    pass(run, array(run, in_, in_.data), array(run, out_, out_.data), false);
  }
  void backward(const Run& run) const override {
    if (!target_.buffer) return;
    pass(run, array(run, out_, out_.gradient), array(run, in_, target_.buffer), target_.add);
  }

 private:
  void pass(const Run& run, ConstArray from, Array to, bool add) const {
    const auto area = static_cast<uint32_t>(out_.extent.area());
    const Matrix per_sample{samples_, static_cast<uint32_t>(out_.extent.channels)};
    if (drops_) {
      run.kernels().dropout(from, to, add, draw_, run.slots, area, per_sample);
    } else {
      run.kernels().convert(from, to, per_sample.size() * area, add);
    }
  }

  const int layer_;
  bool drops_ = false;
  DropoutDraw draw_;
  uint32_t samples_ = 0;
  Value in_, out_;
  GradientTarget target_;
};

class FlattenStep final : public Step {
 public:
  explicit FlattenStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    area_ = static_cast<uint32_t>(in_.extent.area());
    per_sample_ = {c.samples(), static_cast<uint32_t>(in_.extent.channels)};
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    target_ = c.gradient(c.value(c.layer(layer_).inputs[0]));
  }
  void forward(const Run& run) const override {
    run.kernels().flatten(array(run, in_, in_.data), array(run, out_, out_.data), area_,
                          per_sample_);
  }
  void backward(const Run& run) const override {
    if (!target_.buffer) return;
    run.kernels().unflatten(array(run, out_, out_.gradient), array(run, in_, target_.buffer), area_,
                            per_sample_, target_.add);
  }

 private:
  const int layer_;
  uint32_t area_ = 1;
  Matrix per_sample_;
  Value in_, out_;
  GradientTarget target_;
};

}  // namespace

std::unique_ptr<Step> make_activation(int layer) { return std::make_unique<ActivationStep>(layer); }
std::unique_ptr<Step> make_add(int layer, int output) {
  return std::make_unique<AddStep>(layer, output);
}
std::unique_ptr<Step> make_dropout(int layer) { return std::make_unique<DropoutStep>(layer); }
std::unique_ptr<Step> make_flatten(int layer) { return std::make_unique<FlattenStep>(layer); }

}  // namespace outrigger::nn::cuda
