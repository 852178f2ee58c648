#include "nn/loss_scale.h"

#include <algorithm>

namespace outrigger::nn {

std::optional<LossScale> next_scale(const LossScaling& scaling, LossScale scale,
                                    bool gradients_finite) {
  if (!gradients_finite) {
    if (scale.value <= scaling.least) return std::nullopt;
    return LossScale{std::max(scaling.least, scale.value / 2), 0};
  }
  if (scale.good_steps + 1 < scaling.good_steps_to_grow)
    return LossScale{scale.value, scale.good_steps + 1};
  return LossScale{std::min(scaling.most, scale.value * 2), 0};
}

}  // namespace outrigger::nn
