#include <algorithm>
#include <variant>

#include "nn/cpu/onednn/gemm.h"
#include "nn/cpu/operations/operation.h"
#include "nn/cpu/operations/slices.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

// Weights up to here stay in a core's cache from block to block; larger ones are read once for the
// whole batch, each slice of them by one task.
constexpr int64_t kMostWeightsInBlocks = 64 * 1024;

/// Always float32: a network's linear layers are a small part of its work and its most sensitive
/// one.
class LinearOperation final : public Operation {
 public:
  explicit LinearOperation(int layer) : layer_(layer) {}
  int output() const override { return layer_; }

  void announce(Compilation& c) override {
    Value &in = c.input_of(layer_), &out = c.value(layer_);
    batch_ = c.options().batch;
    ins_ = in.channels;
    outs_ = out.channels;
    out_slices_ = Slices(outs_);
    in_slices_ = Slices(ins_);
    in_blocks_ = ins_ * outs_ <= kMostWeightsInBlocks;
    has_bias_ = std::get<Linear>(c.layer(layer_).operation).bias;
    weight_range_ = c.parameter(layer_, 0);
    trains_weights_ = c.training() && c.trains(layer_, 0);
    if (has_bias_) {
      bias_range_ = c.parameter(layer_, 1);
      trains_bias_ = c.training() && c.trains(layer_, 1);
    }
    if (trains_weights_) in.kept = true;
    if (trains_weights_ || trains_bias_) out.whole_gradient = true;
    if (in_blocks_) return;
    in.whole = out.whole = true;
    in.whole_gradient = out.whole_gradient = true;
  }

  void plan_forward(Compilation& c) override {
    in_ = c.input_of(layer_).data;
    out_ = c.create(c.value(layer_));
    weights_ = c.reserve_weights(static_cast<size_t>(ins_ * outs_) * sizeof(float));
    bias_ = c.reserve_weights(static_cast<size_t>(outs_) * sizeof(float));
    if (in_blocks_) {
      c.forward().add(
          {PieceKind::kBlock, layer_, 0, {in_, out_}, [this](const Run& run, const Task& task) {
             forward(run, task.first, task.samples, 0, outs_);
           }});
    } else {
      c.forward().add({PieceKind::kWhole,
                       layer_,
                       out_slices_.count(),
                       {in_, out_},
                       [this](const Run& run, const Task& task) {
                         forward(run, 0, batch_, out_slices_.first(task.index),
                                 out_slices_.size(task.index));
                       }});
    }
  }

  void plan_backward(Compilation& c) override {
    gradient_ = c.gradient(layer_, c.value(layer_));
    if (c.input_of(layer_).wants_gradient) plan_backward_data(c);
    if (!trains_weights_ && !trains_bias_) return;
    c.backward().add({PieceKind::kDeferred,
                      layer_,
                      out_slices_.count(),
                      {in_, gradient_},
                      [this](const Run& run, const Task& task) {
                        weight_gradient(run, out_slices_.first(task.index),
                                        out_slices_.size(task.index));
                      },
                      c.trained({layer_})});
  }

  void load(const LoadArguments& a) const override {
    std::copy_n(a.parameters.data() + weight_range_.offset, ins_ * outs_,
                reinterpret_cast<float*>(a.weights + weights_));
    if (has_bias_)
      std::copy_n(a.parameters.data() + bias_range_.offset, outs_,
                  reinterpret_cast<float*>(a.weights + bias_));
  }

 private:
  void plan_backward_data(Compilation& c) {
    dx_ = c.create_gradient(c.input_of(layer_));
    if (in_blocks_) {
      c.backward().add({PieceKind::kBlock,
                        layer_,
                        0,
                        {gradient_, dx_},
                        [this](const Run& run, const Task& task) {
                          backward_data(run, task.first, task.samples, 0, ins_);
                        }});
    } else {
      c.backward().add({PieceKind::kWhole,
                        layer_,
                        in_slices_.count(),
                        {gradient_, dx_},
                        [this](const Run& run, const Task& task) {
                          backward_data(run, 0, batch_, in_slices_.first(task.index),
                                        in_slices_.size(task.index));
                        }});
    }
  }

  // y[:, begin : begin + size] for some samples
  void forward(const Run& run, int64_t first, int64_t samples, int64_t begin, int64_t size) const {
    float* y = run.at<float>(out_, first) + begin;
    if (has_bias_) {
      for (int64_t i = 0; i < samples; ++i)
        std::copy_n(run.weight<float>(bias_) + begin, size, y + i * outs_);
    }
    onednn::gemm({samples, size, ins_}, {run.at<float>(in_, first), ins_, false},
                 {run.weight<float>(weights_) + begin * ins_, ins_, true}, {y, outs_, has_bias_});
  }
  // dx[:, begin : begin + size]
  void backward_data(const Run& run, int64_t first, int64_t samples, int64_t begin,
                     int64_t size) const {
    onednn::gemm({samples, size, outs_}, {run.at<float>(gradient_, first), outs_, false},
                 {run.weight<float>(weights_) + begin, ins_, false},
                 {run.at<float>(dx_, first) + begin, ins_, false});
  }
  void weight_gradient(const Run& run, int64_t begin, int64_t size) const {
    const float* gradient = run.at<float>(gradient_) + begin;
    float* gradients = run.back->gradients.data();
    if (trains_weights_) {
      onednn::gemm({size, ins_, batch_}, {gradient, outs_, true}, {run.at<float>(in_), ins_, false},
                   {gradients + weight_range_.offset + begin * ins_, ins_, false});
    }
    if (!trains_bias_) return;
    float* bias = gradients + bias_range_.offset + begin;
    std::fill_n(bias, size, 0.0f);
    for (int64_t i = 0; i < batch_; ++i) {
      for (int64_t o = 0; o < size; ++o) bias[o] += gradient[i * outs_ + o];
    }
  }

  const int layer_;
  int64_t batch_ = 0, ins_ = 0, outs_ = 0;
  Slices out_slices_, in_slices_;
  bool in_blocks_ = false, has_bias_ = false, trains_weights_ = false, trains_bias_ = false;
  Range weight_range_, bias_range_;
  size_t weights_ = 0, bias_ = 0;
  BufferId in_, out_, gradient_, dx_;
};

}  // namespace

std::unique_ptr<Operation> make_linear(int layer) {
  return std::make_unique<LinearOperation>(layer);
}

}  // namespace outrigger::nn::cpu
