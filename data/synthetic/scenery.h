#pragma once

#include <vector>

#include "data/synthetic/shapes.h"

namespace outrigger::data::synthetic {

/// A flat thing before or behind a face, in picture coordinates (−1 to 1).
struct Thing {
  enum class Kind { kEllipse, kBox, kStroke } kind = Kind::kBox;
  Point centre;
  Point size;
  float angle = 0;
  Color color;
  float opacity = 1;

  float distance(Point p) const;
};

/// A gradient with things scattered over it.
class Background {
 public:
  explicit Background(uint64_t seed);
  void paint(Point p, Paint& paint) const;
  Color ground(Point p) const;

 private:
  Color left_, right_;
  Point slope_;
  std::vector<Thing> things_;
};

/// What covers parts of a face in picture coordinates: patches, and bars like sunglasses or a
/// scarf, whose place in the face is `eyes` and `mouth`.
std::vector<Thing> draw_occluders(uint64_t seed, Point eyes, Point mouth, float turn);

}  // namespace outrigger::data::synthetic
