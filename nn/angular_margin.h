#pragma once

namespace outrigger::nn {

/// The cosine of the own class after ArcFace's margin, and its derivative by the cosine before.
struct MarginCosine {
  float value = 0;
  float slope = 1;
};

/// cos(theta + margin) for cosine = cos(theta) (Deng et al., "ArcFace", CVPR 2019, eq. 3). Where
/// theta + margin would pass pi, and cos would rise again, it goes on as cosine - margin *
/// sin(margin), as the authors' own code does, so that the loss always falls with the angle.
/// `cosine` may lie outside [-1, 1] by rounding. Every backend uses this.
MarginCosine add_angular_margin(float cosine, float margin);

/// Least length that a feature or class vector is divided by; PyTorch's normalize has the same.
inline constexpr float kLeastLength = 1e-12f;

}  // namespace outrigger::nn
