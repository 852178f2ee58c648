#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

ConvolutionShape shape_of(const Compilation& c, int layer, const Value& in, const Value& out) {
  const auto& operation = std::get<Convolution>(c.layer(layer).operation);
  ConvolutionShape shape;
  shape.type = out.type;
  shape.samples = c.samples();
  shape.in_channels = static_cast<uint32_t>(in.extent.channels);
  shape.out_channels = static_cast<uint32_t>(out.extent.channels);
  shape.groups = static_cast<uint32_t>(operation.groups);
  shape.in_height = static_cast<int>(in.extent.height);
  shape.in_width = static_cast<int>(in.extent.width);
  shape.out_height = static_cast<int>(out.extent.height);
  shape.out_width = static_cast<int>(out.extent.width);
  shape.kernel = static_cast<int>(operation.kernel);
  shape.stride = static_cast<int>(operation.stride);
  shape.padding = static_cast<int>(operation.padding);
  return shape;
}

/// One pass of a convolution as the library runs it, with the memory it wants.
struct LibraryPass {
  std::shared_ptr<PlannedConvolution> plan;
  BufferId workspace;

  // Depthwise ones are limited by memory, which kernels of our own read once.
  void make(Compilation& c, const ConvolutionShape& shape, ConvolutionPass pass) {
    if (!shape.depthwise()) plan = c.engine().plan_convolution(shape, pass);
    if (plan && plan->workspace_bytes() > 0) workspace = c.create(plan->workspace_bytes());
  }
  void run(const Run& run, const void* a, const void* b, void* result) const {
    plan->run(a, b, result, workspace ? run.at<void>(workspace) : nullptr);
  }
};

class ConvolutionStep final : public Step {
 public:
  explicit ConvolutionStep(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void plan_forward(Compilation& c) override {
    const Value& in = c.value(c.layer(layer_).inputs[0]);
    c.use(in.data);
    c.create(c.value(layer_));
    in_ = in;
    out_ = c.value(layer_);
    shape_ = shape_of(c, layer_, in_, out_);
    size_ = c.matrix(out_);
    bias_ = std::get<Convolution>(c.layer(layer_).operation).bias;
    parameters_at_ = c.parameters_at(layer_);
    packed_at_ = c.reserve(shape_.weights() * element_size(shape_.type));
    forward_.make(c, shape_, ConvolutionPass::kForward);
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(layer_);
    c.use(out_.gradient);
    trains_ = c.trains(layer_);
    gradient_at_ = c.gradient_offset(layer_);
    if (trains_) plan_weight_gradient(c);
    Value& in = c.value(c.layer(layer_).inputs[0]);
    target_ = c.gradient(in);
    if (!target_.buffer) return;
    input_.make(c, shape_, ConvolutionPass::kInputGradient);
    if (input_.plan && target_.add) fresh_ = c.create(c.bytes(in));
    in_ = in;
  }
  void load(Engine& engine, std::byte* weights) const override {
    engine.kernels().pack_weights(reinterpret_cast<const float*>(weights + parameters_at_),
                                  {shape_.type, weights + packed_at_}, shape_);
  }
  void forward(const Run& run) const override {
    const Array y = array(run, out_, out_.data);
    if (forward_.plan) {
      forward_.run(run, run.at(in_.data), packed(run).data, y.data);
    } else {
      run.kernels().convolve(array(run, in_, in_.data), packed(run), y, shape_);
    }
    if (bias_) run.kernels().add_bias(y, run.weight(parameters_at_) + shape_.weights(), size_);
  }
  void backward(const Run& run) const override {
    const ConstArray dy = array(run, out_, out_.gradient);
    if (trains_) weight_gradient(run, dy);
    if (target_.buffer) input_gradient(run, dy);
  }

 private:
  ConstArray packed(const Run& run) const { return {shape_.type, run.weight<void>(packed_at_)}; }

  void plan_weight_gradient(Compilation& c) {
    c.use(in_.data);
    weights_.make(c, shape_, ConvolutionPass::kWeightGradient);
    if (weights_.plan)
      result_ = c.create(shape_.weights() * element_size(weights_.plan->result_type()));
  }
  void weight_gradient(const Run& run, ConstArray dy) const {
    const ConstArray x = array(run, in_, in_.data);
    float* gradient = run.gradients + gradient_at_;
    if (weights_.plan) {
      weights_.run(run, dy.data, x.data, run.at(result_));
      run.kernels().unpack_weights({weights_.plan->result_type(), run.at(result_)}, gradient,
                                   shape_);
    } else {
      run.kernels().convolve_weights(x, dy, gradient, shape_);
    }
    if (bias_) run.kernels().sum_columns(dy, gradient + shape_.weights(), size_);
  }
  void input_gradient(const Run& run, ConstArray dy) const {
    const Array dx = array(run, in_, target_.buffer);
    if (!input_.plan) {
      run.kernels().convolve_backward(dy, packed(run), dx, target_.add, shape_);
      return;
    }
    const Array result = fresh_ ? array(run, in_, fresh_) : dx;
    input_.run(run, dy.data, packed(run).data, result.data);
    if (fresh_) {
      const uint32_t count = shape_.samples * static_cast<uint32_t>(in_.extent.size());
      run.kernels().convert(result, dx, count, true);
    }
  }

  const int layer_;
  Value in_, out_;
  ConvolutionShape shape_;
  Matrix size_;
  bool bias_ = false, trains_ = false;
  size_t parameters_at_ = 0, packed_at_ = 0;
  int64_t gradient_at_ = 0;
  LibraryPass forward_, input_, weights_;
  GradientTarget target_;
  BufferId fresh_, result_;
};

}  // namespace

std::unique_ptr<Step> make_convolution(int layer) {
  return std::make_unique<ConvolutionStep>(layer);
}

}  // namespace outrigger::nn::cuda
