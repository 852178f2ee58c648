#include "common/error.h"
#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

Window window_of(const Compilation& c, const Value& in, const Value& out) {
  Window window;
  window.samples = c.samples();
  window.channels = static_cast<uint32_t>(in.extent.channels);
  window.in_height = static_cast<int>(in.extent.height);
  window.in_width = static_cast<int>(in.extent.width);
  window.out_height = static_cast<int>(out.extent.height);
  window.out_width = static_cast<int>(out.extent.width);
  return window;
}

template <typename Pool>
void set_kernel(Window& window, const Pool& pool) {
  window.kernel_height = window.kernel_width = static_cast<int>(pool.kernel);
  window.stride = static_cast<int>(pool.stride);
  window.padding = static_cast<int>(pool.padding);
}

class MaxPoolStep final : public Step {
 public:
  explicit MaxPoolStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const auto& pool = std::get<MaxPool>(c.layer(layer_).operation);
    constexpr int64_t kMost = 15;  // a place in the window is kept in one byte
    if (pool.kernel > kMost) {
      throw InvalidInput("layer \"" + c.layer(layer_).name + "\": a GPU pools windows of at most " +
                         std::to_string(kMost) + " x " + std::to_string(kMost) + ", not " +
                         std::to_string(pool.kernel));
    }
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    window_ = window_of(c, in_, out_);
    set_kernel(window_, pool);
    if (c.training()) taps_ = c.create(window_.outputs());
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    c.use(taps_);
    target_ = c.gradient(c.value(c.layer(layer_).inputs[0]));
  }
  void forward(const Run& run) const override {
    run.kernels().max_pool(array(run, in_, in_.data), array(run, out_, out_.data),
                           taps_ ? run.at<uint8_t>(taps_) : nullptr, window_);
  }
  void backward(const Run& run) const override {
    if (!target_.buffer) return;
    run.kernels().max_pool_backward(array(run, out_, out_.gradient), run.at<uint8_t>(taps_),
                                    array(run, in_, target_.buffer), target_.add, window_);
  }

 private:
  const int layer_;
  Value in_, out_;
  Window window_;
  BufferId taps_;
  GradientTarget target_;
};

/// Of windows, or of the whole map.
class AveragePoolStep final : public Step {
 public:
  explicit AveragePoolStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    in_ = c.value(c.layer(layer_).inputs[0]);
    c.use(in_.data);
    c.create(c.value(layer_));
    out_ = c.value(layer_);
    window_ = window_of(c, in_, out_);
    if (const auto* pool = std::get_if<AveragePool>(&c.layer(layer_).operation)) {
      set_kernel(window_, *pool);
    } else {
      window_.kernel_height = window_.in_height;
      window_.kernel_width = window_.in_width;
    }
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    target_ = c.gradient(c.value(c.layer(layer_).inputs[0]));
  }
  void forward(const Run& run) const override {
    run.kernels().average_pool(array(run, in_, in_.data), array(run, out_, out_.data), window_);
  }
  void backward(const Run& run) const override {
    if (!target_.buffer) return;
    run.kernels().average_pool_backward(array(run, out_, out_.gradient),
                                        array(run, in_, target_.buffer), target_.add, window_);
  }

 private:
  const int layer_;
  Value in_, out_;
  Window window_;
  GradientTarget target_;
};

}  // namespace

std::unique_ptr<Step> make_max_pool(int layer) { return std::make_unique<MaxPoolStep>(layer); }
std::unique_ptr<Step> make_average_pool(int layer) {
  return std::make_unique<AveragePoolStep>(layer);
}

}  // namespace outrigger::nn::cuda
