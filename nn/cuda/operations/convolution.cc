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

/// Whether it is a product of matrices: of places by channels.
bool is_pointwise(const ConvolutionShape& shape) {
  return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0 && shape.groups == 1;
}

/// One pass of a convolution as the library runs it, with the memory it wants.
struct LibraryPass {
  std::shared_ptr<PlannedConvolution> plan;
  BufferId workspace;

  void make(Compilation& c, const ConvolutionRequest& request) {
    if (!request.shape.is_ours()) plan = c.engine().plan_convolution(request);
    if (plan && plan->workspace_bytes() > 0) workspace = c.create(plan->workspace_bytes());
  }
  void run(const Run& run, ConvolutionArrays arrays) const {
    if (workspace) arrays.workspace = run.at<void>(workspace);
    plan->run(arrays);
  }
};

/// Batch norm's sums may be the library's where it reads all that is written here and measures it
/// as one group. Those of float32 would lose digits, and bfloat16 has no plans (decision 11).
bool is_measured_behind(const Compilation& c, int layer) {
  const int reader = c.sole_reader(layer);
  return reader >= 0 && c.training() && c.options().groups == 1 &&
         c.map_type() == Stored::kFloat16 && !c.layer(reader).frozen &&
         std::holds_alternative<BatchNorm>(c.layer(reader).operation);
}

/// A convolution with a ReLU behind it, whose output alone is kept: it tells backward what the
/// ReLU's input would.
class ConvolutionStep final : public Step {
 public:
  ConvolutionStep(int layer, int output) : layer_(layer), output_(output) {}
  int output() const override { return output_; }

  void plan_forward(Compilation& c) override {
    const Value& in = c.value(c.layer(layer_).inputs[0]);
    c.use(in.data);
    c.create(c.value(output_));
    in_ = in;
    shape_ = shape_of(c, layer_, in_, c.value(output_));
    size_ = c.matrix(c.value(output_));
    bias_ = std::get<Convolution>(c.layer(layer_).operation).bias;
    parameters_at_ = c.parameters_at(layer_);
    packed_at_ = c.reserve(shape_.weights() * element_size(shape_.type));
    plan_library(c);
    out_ = c.value(output_);
  }
  void plan_backward(Compilation& c) override {
    out_ = c.value(output_);
    c.use(out_.gradient);
    if (relu()) c.use(out_.data);
    trains_ = c.trains(layer_);
    gradient_at_ = c.gradient_offset(layer_);
    if (trains_) plan_weight_gradient(c);
    Value& in = c.value(c.layer(layer_).inputs[0]);
    target_ = c.gradient(in);
    if (!target_.buffer) return;
    in_ = in;
    if (adds_product()) return;
    input_.make(c, {shape_, ConvolutionPass::kInputGradient});
    if (input_.plan && target_.add) fresh_ = c.create(c.bytes(in));
  }
  void load(Engine& engine, std::byte* weights) const override {
    engine.kernels().pack_weights(reinterpret_cast<const float*>(weights + parameters_at_),
                                  {shape_.type, weights + packed_at_}, shape_);
    if (fused_ && bias_) {
      engine.kernels().convert({Stored::kFloat32, weights + float_bias_at()},
                               {shape_.type, weights + bias_at_}, size_.columns, false);
    }
  }
  void forward(const Run& run) const override {
    const Array y = array(run, out_, out_.data);
    const ConstArray x = array(run, in_, in_.data);
    if (fused_) {
      fused_forward(run, x, y);
      return;
    }
    if (forward_.plan) {
      forward_.run(run, {.a = x.data, .b = packed(run).data, .result = y.data});
    } else {
      run.kernels().convolve(x, packed(run), y, shape_);
    }
    if (bias_) {
      run.kernels().add_bias(y, run.weight(float_bias_at()), relu(), size_);
    } else if (relu()) {
      run.kernels().activate(y, nullptr, y, size_);
    }
  }
  // Who reads the output has written all of its gradient, and nobody reads that behind this step.
  void backward(const Run& run) const override {
    const Array dy = array(run, out_, out_.gradient);
    float* bias = bias_ && trains_ ? run.gradients + gradient_at_ + shape_.weights() : nullptr;
    if (relu()) {
      run.kernels().mask(array(run, out_, out_.data), dy, bias, size_);
    } else if (bias != nullptr) {
      run.kernels().sum_columns(dy, bias, size_);
    }
    if (trains_) weight_gradient(run, dy);
    if (target_.buffer) input_gradient(run, dy);
  }

 private:
  bool relu() const { return output_ != layer_; }
  // cuDNN's plans add nothing: their result would be one more array, and added in one more pass.
  bool adds_product() const { return target_.add && is_pointwise(shape_); }
  size_t float_bias_at() const { return parameters_at_ + shape_.weights() * sizeof(float); }
  ConstArray packed(const Run& run) const { return {shape_.type, run.weight<void>(packed_at_)}; }

  Epilogue epilogue(const Compilation& c) const {
    if (bias_) return relu() ? Epilogue::kBiasRelu : Epilogue::kBias;
    return is_measured_behind(c, layer_) ? Epilogue::kStatistics : Epilogue::kNone;
  }
  // All as one, or else the convolution alone.
  void plan_library(Compilation& c) {
    ConvolutionRequest request{shape_, ConvolutionPass::kForward, epilogue(c)};
    if (request.epilogue != Epilogue::kNone) forward_.make(c, request);
    fused_ = forward_.plan != nullptr;
    Value& out = c.value(output_);
    out.sums = {};
    if (fused_ && request.epilogue == Epilogue::kStatistics)
      out.sums = c.create(2 * size_.columns * sizeof(float));
    // A copy of its own has the library's type, and lies where vectors may be read.
    if (fused_ && bias_) bias_at_ = c.reserve(size_.columns * element_size(shape_.type));
    request.epilogue = Epilogue::kNone;
    if (!fused_) forward_.make(c, request);
  }

  void fused_forward(const Run& run, ConstArray x, Array y) const {
    forward_.run(run, {.a = x.data,
                       .b = packed(run).data,
                       .result = y.data,
                       .bias = bias_ ? run.weight<void>(bias_at_) : nullptr,
                       .sums = out_.sums ? run.at<float>(out_.sums) : nullptr});
  }

  void plan_weight_gradient(Compilation& c) {
    c.use(in_.data);
    if (!is_pointwise(shape_)) weights_.make(c, {shape_, ConvolutionPass::kWeightGradient});
    if (weights_.plan)
      result_ = c.create(shape_.weights() * element_size(weights_.plan->result_type()));
  }
  void weight_gradient(const Run& run, ConstArray dy) const {
    const ConstArray x = array(run, in_, in_.data);
    float* gradient = run.gradients + gradient_at_;
    if (weights_.plan) {
      weights_.run(run, {.a = dy.data, .b = x.data, .result = run.at(result_)});
      run.kernels().unpack_weights({weights_.plan->result_type(), run.at(result_)}, gradient,
                                   shape_);
    } else if (is_pointwise(shape_)) {
      run.engine->multiply({.a = dy,
                            .b = x,
                            .c = {Stored::kFloat32, gradient},
                            .rows = size_.columns,
                            .columns = shape_.in_channels,
                            .inner = size_.rows,
                            .transpose_a = true});
    } else {
      run.kernels().convolve_weights(x, dy, gradient, shape_);
    }
  }
  void input_gradient(const Run& run, ConstArray dy) const {
    const Array dx = array(run, in_, target_.buffer);
    if (adds_product()) {
      run.engine->multiply({.a = dy,
                            .b = packed(run),
                            .c = dx,
                            .rows = size_.rows,
                            .columns = shape_.in_channels,
                            .inner = size_.columns,
                            .add = true});
      return;
    }
    if (!input_.plan) {
      run.kernels().convolve_backward(dy, packed(run), dx, target_.add, shape_);
      return;
    }
    const Array result = fresh_ ? array(run, in_, fresh_) : dx;
    input_.run(run, {.a = dy.data, .b = packed(run).data, .result = result.data});
    if (fresh_) {
      const uint32_t count = shape_.samples * static_cast<uint32_t>(in_.extent.size());
      run.kernels().convert(result, dx, count, true);
    }
  }

  const int layer_, output_;
  Value in_, out_;
  ConvolutionShape shape_;
  Matrix size_;
  bool bias_ = false, fused_ = false, trains_ = false;
  size_t parameters_at_ = 0, packed_at_ = 0, bias_at_ = 0;
  int64_t gradient_at_ = 0;
  LibraryPass forward_, input_, weights_;
  GradientTarget target_;
  BufferId fresh_, result_;
};

}  // namespace

std::unique_ptr<Step> make_convolution(int layer, int output) {
  return std::make_unique<ConvolutionStep>(layer, output);
}

}  // namespace outrigger::nn::cuda
