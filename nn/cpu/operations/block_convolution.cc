#include "nn/cpu/operations/block_convolution.h"

#include <algorithm>

namespace outrigger::nn::cpu {

void BlockConvolution::plan(Compilation& c, const ConvolutionShape& shape, ConvolutionPass pass) {
  shape_ = shape;
  block_ = c.blocks().size;
  own_ = make_own_convolution(shape, pass);
  if (own_ != nullptr) {
    whole_weights_ = c.reserve_weights(own_->weight_bytes());
  } else {
    plan_primitives(c, pass);
  }
  c.reserve_slot(scratchpad_bytes());
}

void BlockConvolution::plan_primitives(Compilation& c, ConvolutionPass pass) {
  const auto make = [&](int64_t samples) {
    return pass == ConvolutionPass::kForward
               ? onednn::convolution_forward(shape_, samples, c.slots())
               : onednn::convolution_backward_data(shape_, samples, c.slots());
  };
  whole_ = make(block_);
  whole_weights_ = rest_weights_ = c.reserve_weights(whole_.weights.get_size());
  if (c.blocks().rest() == 0) return;
  rest_ = make(c.blocks().rest());
  if (rest_.weights != whole_.weights) rest_weights_ = c.reserve_weights(rest_.weights.get_size());
}

size_t BlockConvolution::scratchpad_bytes() const {
  if (own_ != nullptr) return own_->scratchpad_bytes();
  return std::max(whole_.primitive.scratchpad_bytes(), rest_.primitive.scratchpad_bytes());
}

void BlockConvolution::load(const float* weights, std::byte* packed) const {
  if (own_ != nullptr) return own_->load(weights, packed + whole_weights_);
  const auto plain = onednn::plain_weights(shape_);
  onednn::reorder(plain, weights, whole_.weights, packed + whole_weights_);
  if (rest_weights_ != whole_weights_)
    onednn::reorder(plain, weights, rest_.weights, packed + rest_weights_);
}

void BlockConvolution::execute(const Run& run, const Task& task, std::byte* scratchpad,
                               const void* from, const float* bias, void* to) const {
  if (own_ != nullptr) {
    return own_->execute(scratchpad, from, run.weight<std::byte>(whole_weights_), bias, to,
                         task.samples);
  }
  const bool is_whole = task.samples == block_;
  const auto& primitive = is_whole ? whole_.primitive : rest_.primitive;
  const auto* weights = run.weight<std::byte>(is_whole ? whole_weights_ : rest_weights_);
  if (bias != nullptr) {
    primitive.execute(task.slot, scratchpad, {from, weights, bias, to});
  } else {
    primitive.execute(task.slot, scratchpad, {from, weights, to});
  }
}

}  // namespace outrigger::nn::cpu
