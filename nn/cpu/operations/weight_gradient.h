#pragma once

#include <memory>
#include <optional>

#include "nn/cpu/convolution_shape.h"
#include "nn/cpu/onednn/primitive.h"
#include "nn/cpu/own_convolution.h"

namespace outrigger::nn::cpu {

/// The gradient of a convolution's weights over so many samples, on one thread. Ours where the
/// convolution is (own_convolution.h). Else mostly oneDNN's own primitive; where
/// that leaves most of AMX's tiles empty (maps of a few pixels, many channels), one matrix product
/// for each place of the kernel: the input as that place sees it, transposed, times dy.
class WeightGradient {
 public:
  WeightGradient() = default;
  /// The result in `layout` where given: that of another one for the same shape.
  WeightGradient(const ConvolutionShape& shape, int64_t samples, int slots,
                 const std::optional<dnnl::memory::desc>& layout = std::nullopt);

  /// Of the result, {out, in / groups, kernel, kernel}, float32.
  const dnnl::memory::desc& layout() const { return layout_; }
  /// Only oneDNN's plain loops fit.
  bool slow() const { return slow_; }
  size_t scratchpad_bytes() const {
    return own_ != nullptr ? own_->scratchpad_bytes()
                           : gathered_bytes_ + primitive_.scratchpad_bytes();
  }

  /// x and dy: channels-last, one sample after the other. Not for two threads with the same slot.
  void execute(int slot, std::byte* scratchpad, const std::byte* x, const std::byte* dy,
               std::byte* gradient) const;

 private:
  void gather(int64_t row, int64_t column, const std::byte* x, std::byte* gathered) const;

  ConvolutionShape shape_{};
  int64_t samples_ = 0;
  bool by_products_ = false, slow_ = false;
  std::unique_ptr<const OwnWeightGradient> own_;
  onednn::Primitive primitive_;  // the convolution's, or one place's product
  dnnl::memory::desc layout_;
  size_t gathered_bytes_ = 0;
};

}  // namespace outrigger::nn::cpu
