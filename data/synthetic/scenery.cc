#include "data/synthetic/scenery.h"

namespace outrigger::data::synthetic {

float Thing::distance(Point p) const {
  const Point q = turned({p.x - centre.x, p.y - centre.y}, angle);
  switch (kind) {
    case Kind::kEllipse:
      return ellipse(q, {}, size);
    case Kind::kBox:
      return box(q, {}, size);
    case Kind::kStroke:
      return stroke(q, {-size.x, 0}, {size.x, 0}, size.y);
  }
  return 1;
}

Background::Background(uint64_t seed) {
  RandomStream r(seed, RandomUse::kSyntheticData, 0, 2);
  left_ = random_color(r);
  right_ = random_color(r);
  slope_ = {between(r, -0.5F, 0.5F), between(r, -0.5F, 0.5F)};
  const uint32_t count = 4 + r.below(10);
  for (uint32_t i = 0; i < count; ++i) {
    Thing thing;
    thing.kind = static_cast<Thing::Kind>(r.below(3));
    thing.centre = {between(r, -1.1F, 1.1F), between(r, -1.1F, 1.1F)};
    thing.size = {between(r, 0.05F, 0.6F), between(r, 0.02F, 0.3F)};
    thing.angle = between(r, 0, 3.1415927F);
    thing.color = random_color(r);
    thing.opacity = between(r, 0.4F, 1);
    things_.push_back(thing);
  }
}

Color Background::ground(Point p) const {
  return mix(left_, right_, std::clamp(0.5F + slope_.x * p.x + slope_.y * p.y, 0.0F, 1.0F));
}

void Background::paint(Point p, Paint& paint) const {
  for (const Thing& thing : things_) paint.cover(thing.distance(p), thing.color, thing.opacity);
}

std::vector<Thing> draw_occluders(uint64_t seed, Point eyes, Point mouth, float turn) {
  RandomStream r(seed, RandomUse::kSyntheticData, 0, 3);
  std::vector<Thing> things;
  const uint32_t kind = r.below(12);
  if (kind == 0) {  // like sunglasses
    things.push_back({Thing::Kind::kBox,
                      eyes,
                      {0.42F, between(r, 0.06F, 0.10F)},
                      turn,
                      {0.05F, 0.05F, 0.07F},
                      0.95F});
  } else if (kind == 1) {  // like a scarf
    const Point centre{mouth.x, mouth.y + 0.12F};
    things.push_back(
        {Thing::Kind::kBox, centre, {0.65F, between(r, 0.12F, 0.20F)}, turn, random_color(r), 1});
  }
  const uint32_t patches = r.below(3);
  for (uint32_t i = 0; i < patches; ++i) {
    Thing thing;
    thing.kind = r.below(2) == 0 ? Thing::Kind::kEllipse : Thing::Kind::kBox;
    thing.centre = {between(r, -0.6F, 0.6F), between(r, -0.7F, 0.7F)};
    thing.size = {between(r, 0.05F, 0.18F), between(r, 0.05F, 0.18F)};
    thing.angle = between(r, 0, 3.1415927F);
    thing.color = random_color(r);
    things.push_back(thing);
  }
  return things;
}

}  // namespace outrigger::data::synthetic
