#pragma once

#include <cstddef>
#include <cstdint>

#include "nn/cpu/compilation.h"
#include "nn/cpu/onednn/convolution.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {

/// A primitive for whole blocks and one for a smaller last block, each with its weights where they
/// are packed.
struct PackedConvolution {
  onednn::ConvolutionPrimitive whole, rest;
  size_t whole_weights = 0, rest_weights = 0;

  template <typename Make>
  void make(Compilation& c, const Make& make_for) {
    whole = make_for(c.blocks().size);
    c.reserve_slot(whole.primitive.scratchpad_bytes());
    whole_weights = rest_weights = c.reserve_weights(whole.weights.get_size());
    if (c.blocks().rest() == 0) return;
    rest = make_for(c.blocks().rest());
    c.reserve_slot(rest.primitive.scratchpad_bytes());
    if (rest.weights != whole.weights) rest_weights = c.reserve_weights(rest.weights.get_size());
  }
  void load(const dnnl::memory::desc& plain, const float* weights, std::byte* packed) const {
    if (whole.primitive) onednn::reorder(plain, weights, whole.weights, packed + whole_weights);
    if (rest_weights != whole_weights)
      onednn::reorder(plain, weights, rest.weights, packed + rest_weights);
  }
  const onednn::Primitive& of(const Task& task, int64_t block) const {
    return task.samples == block ? whole.primitive : rest.primitive;
  }
  const std::byte* weights(const Run& run, const Task& task, int64_t block) const {
    return run.weight<std::byte>(task.samples == block ? whole_weights : rest_weights);
  }
};

}  // namespace outrigger::nn::cpu
