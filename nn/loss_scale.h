#pragma once

#include <cstdint>
#include <optional>

namespace outrigger::nn {

/// What the loss is multiplied by before the backward pass, so that float16 holds small gradients
/// (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2). Part of a run's
/// state.
struct LossScale {
  float value = 65536.0f;
  int64_t good_steps = 0;  // with this value
};

/// PyTorch's GradScaler's rules: a step whose gradients are not finite is left out and halves the
/// scale; 2000 good ones in a row double it. Powers of two, so that no digit changes.
struct LossScaling {
  int64_t good_steps_to_grow = 2000;
  float most = 16777216.0f;  // 2^24
  float least = 1.0f;
};

/// The scale behind a step; nothing where gradients are not finite even at the least scale, so that
/// none would help. Pure: replicas that see the same sums agree.
std::optional<LossScale> next_scale(const LossScaling& scaling, LossScale scale,
                                    bool gradients_finite);

}  // namespace outrigger::nn
