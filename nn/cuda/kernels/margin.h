#pragma once

#include <cmath>

#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {

/// add_angular_margin (nn/angular_margin.h), for both compilers: a test holds them to one another.
/// Returns the cosine behind the margin, or with `slope` its derivative.
OUTRIGGER_BOTH inline float margin_cosine(float cosine, float margin, bool slope) {
  const double c = cosine < -1.0f ? -1.0 : cosine > 1.0f ? 1.0 : static_cast<double>(cosine);
  const double m = static_cast<double>(margin);
  const double cos_margin = cos(m), sin_margin = sin(m);
  if (c <= -cos_margin) return slope ? 1.0f : static_cast<float>(c - m * sin_margin);
  constexpr double kLeastSine = 1e-4;
  const double sine = sqrt(1.0 - c * c);
  if (!slope) return static_cast<float>(c * cos_margin - sine * sin_margin);
  return static_cast<float>(cos_margin + sin_margin * c / (sine > kLeastSine ? sine : kLeastSine));
}

}  // namespace outrigger::nn::cuda
