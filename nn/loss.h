#pragma once

#include <cstdint>
#include <span>

#include "common/tensor.h"

namespace outrigger::nn {

struct LossResult {
  double loss_sum = 0;  // over the samples
  int64_t correct = 0;  // samples whose largest logit is their label's (first of equals)
};

/// Softmax cross-entropy with label smoothing (Szegedy et al., CVPR 2016; PyTorch's convention:
/// smoothing spread over all classes). logits: float32 {m, K}; gradient: as logits, of the SUM over
/// samples; labels in [0, K). A loss that is not finite is returned as such; the caller decides.
/// Deterministic, one thread.
LossResult softmax_cross_entropy(const ConstTensorView& logits, std::span<const int32_t> labels,
                                 float smoothing, const TensorView& gradient);

/// The same bits of one sample without smoothing, where nobody wants a gradient: half of the work.
LossResult sample_cross_entropy(std::span<const float> logits, int32_t label);

}  // namespace outrigger::nn
