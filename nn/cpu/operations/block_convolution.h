#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nn/cpu/compilation.h"
#include "nn/cpu/onednn/convolution.h"
#include "nn/cpu/own_convolution.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {

/// A convolution's pass over a block of samples, forward or from the output's gradient to the
/// input's: ours where there is one (own_convolution.h), else oneDNN's, a primitive for whole
/// blocks and one for a smaller last block, each with its weights where they are packed.
class BlockConvolution {
 public:
  /// Reserves its weights and its scratchpad.
  void plan(Compilation& c, const ConvolutionShape& shape, ConvolutionPass pass);
  bool planned() const { return own_ != nullptr || whole_.primitive; }
  size_t scratchpad_bytes() const;
  /// From PyTorch's layout.
  void load(const float* weights, std::byte* packed) const;
  /// `from` and `to`: the block's samples. `bias`: null where the convolution has none, and
  /// backward.
  void execute(const Run& run, const Task& task, std::byte* scratchpad, const void* from,
               const float* bias, void* to) const;

 private:
  void plan_primitives(Compilation& c, ConvolutionPass pass);

  ConvolutionShape shape_{};
  std::unique_ptr<const OwnConvolution> own_;
  int64_t block_ = 0;
  onednn::ConvolutionPrimitive whole_, rest_;
  size_t whole_weights_ = 0, rest_weights_ = 0;
};

}  // namespace outrigger::nn::cpu
