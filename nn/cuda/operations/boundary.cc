#include "common/error.h"
#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

size_t byte_count(int64_t samples, int64_t elements, Stored type) {
  return static_cast<size_t>(samples * elements) * element_size(type);
}

/// Activations that came to the device, and their gradient on its way back.
class InputStep final : public Step {
 public:
  explicit InputStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    outside_ = c.crossing_type();
    samples_ = c.samples();
    c.create(c.value(layer_));
    value_ = c.value(layer_);
  }
  void plan_backward(Compilation& c) override {
    value_ = c.value(layer_);
    c.use(value_.gradient);
    if (value_.type != outside_)
      staged_gradient_ = c.create(byte_count(samples_, value_.extent.size(), outside_));
  }
  void forward(const Run& run) const override {
    const Array value = array(run, value_, value_.data);
    if (value_.type == outside_) {
      run.engine->copy(value.data, run.input, byte_count(samples_, value_.extent.size(), outside_));
    } else {
      run.kernels().convert({outside_, run.input}, value, count(), false);
    }
  }
  void backward(const Run& run) const override {
    const std::byte* from = run.at(staged_gradient_ ? staged_gradient_ : value_.gradient);
    if (staged_gradient_) {
      run.kernels().convert(array(run, value_, value_.gradient),
                            {outside_, run.at<void>(staged_gradient_)}, count(), false);
    }
    if (run.loss_scale != 1) {
      ensure(outside_ == Stored::kFloat32, "what is scaled leaves as float32");
      run.kernels().scale(run.at<float>(staged_gradient_ ? staged_gradient_ : value_.gradient),
                          1 / run.loss_scale, count());
    }
    const size_t bytes = byte_count(samples_, value_.extent.size(), outside_);
    if (run.pinned_gradient != nullptr) {
      run.engine->download_pinned(run.pinned_gradient, from, bytes);
    } else {
      run.engine->download(run.input_gradient, from, bytes);
    }
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(samples_ * value_.extent.size()); }
  const int layer_;
  int64_t samples_ = 0;
  Stored outside_ = Stored::kFloat32;
  Value value_;
  BufferId staged_gradient_;
};

/// What leaves the segment, and its gradient from the host. The end of a graph is float32.
class OutputStep final : public Step {
 public:
  explicit OutputStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    last_ = c.options().segment.end == c.graph().size();
    outside_ = last_ ? Stored::kFloat32 : c.crossing_type();
    samples_ = c.samples();
    value_ = c.value(layer_);
    size_ = c.matrix(value_);
    c.use(value_.data);
    if (value_.type != outside_) staged_ = c.create(all_bytes());
  }
  void plan_backward(Compilation& c) override {
    c.gradient(c.value(layer_));
    value_ = c.value(layer_);
    if (last_ && !staged_) c.use(value_.data);  // a loss reads the logits
    if (value_.type != outside_) staged_gradient_ = c.create(all_bytes());
  }
  void forward(const Run& run) const override {
    if (run.loss != nullptr) return;
    const std::byte* from = run.at(staged_ ? staged_ : value_.data);
    if (staged_) {
      run.kernels().convert(array(run, value_, value_.data), {outside_, run.at<void>(staged_)},
                            count(), false);
    }
    run.engine->download(run.out->output.data, from,
                         byte_count(run.count, value_.extent.size(), outside_));
  }
  void backward(const Run& run) const override {
    if (run.loss != nullptr) {
      run.kernels().softmax_loss(run.at<float>(value_.data), run.labels, run.loss->smoothing,
                                 run.loss_scale, run.at<float>(value_.gradient), run.loss->results,
                                 size_);
      return;
    }
    std::byte* to = run.at(staged_gradient_ ? staged_gradient_ : value_.gradient);
    run.engine->upload(to, run.output_gradient, all_bytes());
    if (run.loss_scale != 1) {
      ensure(outside_ == Stored::kFloat32, "what is scaled comes as float32");
      run.kernels().scale(reinterpret_cast<float*>(to), run.loss_scale, count());
    }
    if (staged_gradient_)
      run.kernels().convert({outside_, to}, array(run, value_, value_.gradient), count(), false);
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(samples_ * value_.extent.size()); }
  size_t all_bytes() const { return byte_count(samples_, value_.extent.size(), outside_); }
  const int layer_;
  bool last_ = false;
  int64_t samples_ = 0;
  Matrix size_;
  Stored outside_ = Stored::kFloat32;
  Value value_;
  BufferId staged_, staged_gradient_;
};

/// Pixels that came to the device, unpacked there: x / 255 - mean, over deviation.
class NormalizeStep final : public Step {
 public:
  explicit NormalizeStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const auto& operation = std::get<Normalize>(c.layer(layer_).operation);
    for (const float mean : operation.mean) mean_factor_.push_back(255.0f * mean);
    for (const float deviation : operation.deviation)
      mean_factor_.push_back(static_cast<float>(1.0 / (255.0 * double{deviation})));
    factors_at_ = c.reserve(mean_factor_.size() * sizeof(float));
    c.create(c.value(layer_));
    value_ = c.value(layer_);
    size_ = c.matrix(value_);
  }
  void plan_backward(Compilation&) override {}
  void load(Engine& engine, std::byte* weights) const override {
    engine.upload(weights + factors_at_, mean_factor_.data(), mean_factor_.size() * sizeof(float));
  }
  void forward(const Run& run) const override {
    run.kernels().normalize(reinterpret_cast<const uint8_t*>(run.input), run.weight(factors_at_),
                            array(run, value_, value_.data), size_);
  }
  void backward(const Run&) const override {}

 private:
  const int layer_;
  std::vector<float> mean_factor_;
  size_t factors_at_ = 0;
  Value value_;
  Matrix size_;
};

}  // namespace

std::unique_ptr<Step> make_input(int layer) { return std::make_unique<InputStep>(layer); }
std::unique_ptr<Step> make_output(int layer) { return std::make_unique<OutputStep>(layer); }
std::unique_ptr<Step> make_normalize(int layer) { return std::make_unique<NormalizeStep>(layer); }

}  // namespace outrigger::nn::cuda
