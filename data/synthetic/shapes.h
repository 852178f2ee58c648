#pragma once

#include <algorithm>
#include <cmath>

#include "data/synthetic/face_model.h"

namespace outrigger::data::synthetic {

// Shapes as signed distances (negative inside), in the units of the face.

/// Exact on the outline's axes, near enough elsewhere for smooth edges.
inline float ellipse(Point p, Point centre, Point radii) {
  const float x = (p.x - centre.x) / radii.x;
  const float y = (p.y - centre.y) / radii.y;
  return (std::sqrt(x * x + y * y) - 1) * std::min(radii.x, radii.y);
}

/// A thick line with round ends.
inline float stroke(Point p, Point a, Point b, float half_thickness) {
  const Point ab{b.x - a.x, b.y - a.y};
  const Point ap{p.x - a.x, p.y - a.y};
  const float t =
      std::clamp((ap.x * ab.x + ap.y * ab.y) / (ab.x * ab.x + ab.y * ab.y + 1e-9F), 0.0F, 1.0F);
  return std::hypot(ap.x - t * ab.x, ap.y - t * ab.y) - half_thickness;
}

inline float box(Point p, Point centre, Point half) {
  return std::max(std::fabs(p.x - centre.x) - half.x, std::fabs(p.y - centre.y) - half.y);
}

inline Point turned(Point p, float angle) {
  const float c = std::cos(angle);
  const float s = std::sin(angle);
  return {c * p.x + s * p.y, c * p.y - s * p.x};
}

inline Color scaled(const Color& color, float by) {
  return {color.r * by, color.g * by, color.b * by};
}

/// Paint of one pixel: layers put over each other, with edges as soft as a pixel.
class Paint {
 public:
  Paint(const Color& ground, float pixel) : color_(ground), pixel_(pixel) {}

  /// Covers with `color` where `distance` < 0, at most by `opacity`.
  void cover(float distance, const Color& color, float opacity = 1) {
    blend(distance, pixel_, color, opacity);
  }
  /// The same with an edge `softness` wide.
  void blend(float distance, float softness, const Color& color, float opacity) {
    const float part = std::clamp(0.5F - distance / softness, 0.0F, 1.0F) * opacity;
    if (part <= 0) return;
    color_ = mix(color_, color, part);
    subject_ += (1 - subject_) * part;
  }
  /// From here on layers belong to the subject, which light() falls on.
  void begin_subject() { subject_ = 0; }
  void light(float level) { color_ = scaled(color_, 1 + (level - 1) * subject_); }
  const Color& color() const { return color_; }

 private:
  Color color_;
  float pixel_;
  float subject_ = 0;
};

}  // namespace outrigger::data::synthetic
