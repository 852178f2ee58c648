#include <algorithm>
#include <optional>
#include <variant>

#include "nn/cpu/grouped_convolution.h"
#include "nn/cpu/onednn/weight_layout.h"
#include "nn/cpu/operations/block_convolution.h"
#include "nn/cpu/operations/operation.h"
#include "nn/cpu/operations/weight_gradient.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

class ConvolutionOperation final : public Operation {
 public:
  explicit ConvolutionOperation(const Group& group) : group_(group) {}
  int output() const override { return group_.output(); }

  void announce(Compilation& c) override {
    const Value& in = c.input_of(group_.main);
    Value& out = c.value(output());
    const auto& operation = std::get<Convolution>(c.layer(group_.main).operation);
    shape_ = {in.height,         in.width,         in.channels,      out.height,
              out.width,         out.channels,     operation.kernel, operation.stride,
              operation.padding, operation.groups, operation.bias,   in.bfloat16};
    trains_weights_ = c.training() && c.trains(group_.main, 0);
    trains_bias_ = c.training() && operation.bias && c.trains(group_.main, 1);
    if (group_.activation >= 0 && out.wants_gradient) out.kept = true;
    if (!trains_weights_) return;
    c.input_of(group_.main).kept = true;
    plan_chunks(c, out.places);
    out.whole_gradient = chunks_.size > c.blocks().size;
  }

  void plan_forward(Compilation& c) override;
  void plan_backward(Compilation& c) override;

  void load(const LoadArguments& a) const override {
    const float* weights = a.parameters.data() + weight_range_.offset;
    forward_.load(weights, a.weights);
    if (backward_.planned()) backward_.load(weights, a.weights);
    if (shape_.bias) {
      std::copy_n(a.parameters.data() + bias_range_.offset, shape_.out_channels,
                  reinterpret_cast<float*>(a.weights + bias_));
    }
  }

 private:
  void plan_chunks(Compilation& c, int64_t places);
  BufferId plan_activation_gradient(Compilation& c);
  void plan_backward_data(Compilation& c, BufferId gradient);
  void plan_weight_gradient(Compilation& c, BufferId gradient);
  void plan_bias_gradient(Compilation& c, BufferId gradient);
  void weight_gradient(const Run& run, int chunk, int slot, BufferId gradient) const;

  const Group group_;
  ConvolutionShape shape_{};
  bool trains_weights_ = false, trains_bias_ = false;
  Range weight_range_, bias_range_;
  size_t bias_ = 0;
  int64_t block_ = 0;
  BlockConvolution forward_, backward_;
  BufferId in_, out_;

  Blocks chunks_;
  WeightGradient chunk_, rest_chunk_;
  std::optional<onednn::WeightLayout> layout_;
  BufferId partials_;
};

void ConvolutionOperation::plan_chunks(Compilation& c, int64_t places) {
  chunks_ = choose_chunks(c.blocks(), places);
  chunk_ = {shape_, chunks_.size, c.slots()};
  if (chunks_.rest() > 0) {
    rest_chunk_ = {shape_, chunks_.rest(), c.slots(), chunk_.layout()};
    if (rest_chunk_.slow() && !chunk_.slow()) {
      // The last chunk's primitive would have another layout: one chunk then.
      chunks_.size = chunks_.batch;
      chunk_ = {shape_, chunks_.size, c.slots()};
    } else {
      c.reserve_slot(rest_chunk_.scratchpad_bytes());
    }
  }
  c.reserve_slot(chunk_.scratchpad_bytes());
  layout_.emplace(chunk_.layout());
  c.reserve_slot(layout_->tile_bytes());
}

void ConvolutionOperation::plan_forward(Compilation& c) {
  block_ = c.blocks().size;
  weight_range_ = c.parameter(group_.main, 0);
  in_ = c.input_of(group_.main).data;
  out_ = c.create(c.value(output()));
  forward_.plan(c, shape_, ConvolutionPass::kForward);
  if (shape_.bias) {
    bias_range_ = c.parameter(group_.main, 1);
    bias_ = c.reserve_weights(static_cast<size_t>(shape_.out_channels) * sizeof(float));
  }
  c.forward().add(
      {PieceKind::kBlock, group_.main, 0, {in_, out_}, [this](const Run& run, const Task& task) {
         forward_.execute(run, task, run.scratchpad(task.slot), run.at<std::byte>(in_, task.first),
                          shape_.bias ? run.weight<float>(bias_) : nullptr,
                          run.at<std::byte>(out_, task.first));
       }});
  if (group_.activation < 0) return;
  // Not oneDNN's own: that turns a NaN into 0.
  const int64_t elements = c.value(output()).elements();
  with_type(shape_.bfloat16, [&](auto type) {
    using T = decltype(type);
    const auto relu = c.kernels().of<T>().relu_forward;
    c.forward().add({PieceKind::kBlock,
                     group_.activation,
                     0,
                     {out_},
                     [=, this](const Run& run, const Task& task) {
                       T* y = run.at<T>(out_, task.first);
                       relu(y, y, task.samples * elements);
                     }});
  });
}

BufferId ConvolutionOperation::plan_activation_gradient(Compilation& c) {
  Value& out = c.value(output());
  const BufferId from = c.gradient(output(), out);
  if (group_.activation < 0) return from;
  const BufferId gradient =
      out.whole_gradient ? c.buffers().whole(out.bytes()) : c.buffers().blocked(out.bytes());
  const int64_t elements = out.elements();
  with_type(shape_.bfloat16, [&](auto type) {
    using T = decltype(type);
    const auto relu = c.kernels().of<T>().relu_backward;
    c.backward().add({PieceKind::kBlock,
                      group_.activation,
                      0,
                      {out_, from, gradient},
                      [=, this](const Run& run, const Task& task) {
                        relu(run.at<T>(out_, task.first), run.at<T>(from, task.first),
                             run.at<T>(gradient, task.first), task.samples * elements);
                      }});
  });
  return gradient;
}

void ConvolutionOperation::plan_backward(Compilation& c) {
  const BufferId gradient = plan_activation_gradient(c);
  if (trains_bias_) plan_bias_gradient(c, gradient);
  const bool deferred = trains_weights_ && chunks_.size > block_;
  if (trains_weights_ && !deferred) plan_weight_gradient(c, gradient);
  if (c.input_of(group_.main).wants_gradient) plan_backward_data(c, gradient);
  if (deferred) plan_weight_gradient(c, gradient);
}

void ConvolutionOperation::plan_backward_data(Compilation& c, BufferId gradient) {
  Value& in = c.input_of(group_.main);
  const BufferId dx = c.create_gradient(in);
  // oneDNN's choice for groups in bfloat16 treats each as a matrix of its own: ten to thirty times
  // slower than float32 for the narrow groups of mobile networks.
  const bool widen = shape_.groups > 1 && shape_.bfloat16 && !is_grouped(shape_);
  ConvolutionShape shape = shape_;
  if (widen) shape.bfloat16 = false;
  backward_.plan(c, shape, ConvolutionPass::kBackwardData);
  if (!widen) {
    c.backward().add({PieceKind::kBlock,
                      group_.main,
                      0,
                      {gradient, dx},
                      [=, this](const Run& run, const Task& task) {
                        backward_.execute(run, task, run.scratchpad(task.slot),
                                          run.at<std::byte>(gradient, task.first), nullptr,
                                          run.at<std::byte>(dx, task.first));
                      }});
    return;
  }
  const int64_t ins = in.elements(), outs = c.value(output()).elements();
  const int64_t floats = block_ * (ins + outs);
  // Staging first, oneDNN's scratchpad behind it.
  const int64_t staging = (floats * int64_t{sizeof(float)} + 63) / 64 * 64;
  c.reserve_slot(static_cast<size_t>(staging) + backward_.scratchpad_bytes());
  c.backward().add(
      {PieceKind::kBlock,
       group_.main,
       0,
       {gradient, dx},
       [=, this, &kernels = c.kernels().bfloat16](const Run& run, const Task& task) {
         std::byte* pad = run.scratchpad(task.slot);
         auto* wide_dy = reinterpret_cast<float*>(pad);
         float* wide_dx = wide_dy + task.samples * outs;
         kernels.to_float(run.at<uint16_t>(gradient, task.first), wide_dy, task.samples * outs);
         backward_.execute(run, task, pad + staging, wide_dy, nullptr, wide_dx);
         kernels.from_float(wide_dx, run.at<uint16_t>(dx, task.first), task.samples * ins);
       }});
}

void ConvolutionOperation::weight_gradient(const Run& run, int chunk, int slot,
                                           BufferId gradient) const {
  const int64_t first = chunks_.first(chunk);
  const auto& whole_or_rest = chunks_.samples(chunk) == chunks_.size ? chunk_ : rest_chunk_;
  whole_or_rest.execute(slot, run.scratchpad(slot), run.at<std::byte>(in_, first),
                        run.at<std::byte>(gradient, first),
                        run.at<std::byte>(partials_) + chunk * layout_->bytes());
}

void ConvolutionOperation::plan_weight_gradient(Compilation& c, BufferId gradient) {
  partials_ = c.buffers().whole_fixed(chunks_.count() * layout_->bytes());
  const bool deferred = chunks_.size > block_;
  c.backward().add({deferred ? PieceKind::kDeferred : PieceKind::kBlock,
                    group_.main,
                    chunks_.count(),
                    {in_, gradient, partials_},
                    [=, this](const Run& run, const Task& task) {
                      weight_gradient(run, task.index, task.slot, gradient);
                    }});
  c.backward().add({deferred ? PieceKind::kFollowing : PieceKind::kDeferred,
                    group_.main,
                    layout_->tasks(),
                    {partials_},
                    [this](const Run& run, const Task& task) {
                      const int64_t apart = layout_->bytes() / int64_t{sizeof(float)};
                      layout_->sum(task.index, {run.at<float>(partials_), chunks_.count(), apart},
                                   reinterpret_cast<float*>(run.scratchpad(task.slot)),
                                   run.back->gradients.data() + weight_range_.offset);
                    },
                    {weight_range_}});
}

void ConvolutionOperation::plan_bias_gradient(Compilation& c, BufferId gradient) {
  const int64_t channels = shape_.out_channels, period = period_of(channels);
  const int64_t elements = c.value(output()).elements();
  const int count = c.blocks().count();
  const BufferId sums = c.buffers().whole_fixed(count * period * int64_t{sizeof(float)});
  with_type(shape_.bfloat16, [&](auto type) {
    using T = decltype(type);
    const auto column_sums = c.kernels().of<T>().column_sums;
    c.backward().add({PieceKind::kBlock,
                      group_.main,
                      0,
                      {gradient, sums},
                      [=](const Run& run, const Task& task) {
                        column_sums(run.at<T>(gradient, task.first), task.samples * elements,
                                    period, run.at<float>(sums) + task.index * period);
                      }});
  });
  const auto add_up = [=, this](const Run& run, const Task&) {
    float* bias = run.back->gradients.data() + bias_range_.offset;
    const float* all = run.at<float>(sums);
    for (int64_t channel = 0; channel < channels; ++channel) {
      double sum = 0;
      for (int64_t i = channel; i < count * period; i += channels) sum += double{all[i]};
      bias[channel] = static_cast<float>(sum);
    }
  };
  c.backward().add({PieceKind::kDeferred, group_.main, 1, {sums}, add_up, {bias_range_}});
}

}  // namespace

std::unique_ptr<Operation> make_convolution(const Group& group) {
  return std::make_unique<ConvolutionOperation>(group);
}

}  // namespace outrigger::nn::cpu
