#include "nn/angular_margin.h"

#include <algorithm>
#include <cmath>

namespace outrigger::nn {

MarginCosine add_angular_margin(float cosine, float margin) {
  const double c = std::clamp(static_cast<double>(cosine), -1.0, 1.0);
  const double cos_margin = std::cos(static_cast<double>(margin));
  const double sin_margin = std::sin(static_cast<double>(margin));
  if (c <= -cos_margin) return {static_cast<float>(c - margin * sin_margin), 1.0f};
  // The slope cos(m) + sin(m) / tan(theta) has no bound at theta = 0, where the cosine's own
  // gradient vanishes; the sine is kept from zero so that rounding there cannot blow up.
  constexpr double kLeastSine = 1e-4;
  const double sine = std::sqrt(1.0 - c * c);
  return {static_cast<float>(c * cos_margin - sine * sin_margin),
          static_cast<float>(cos_margin + sin_margin * c / std::max(sine, kLeastSine))};
}

}  // namespace outrigger::nn
