#include "data/synthetic/painter.h"

#include "data/synthetic/scenery.h"
#include "data/synthetic/shapes.h"

namespace outrigger::data::synthetic {
namespace {

constexpr Color kWhite{0.95F, 0.94F, 0.92F};
constexpr Color kDark{0.06F, 0.05F, 0.05F};

/// Distance to the outline of a head: an ellipse above, and below a curve whose exponent shapes the
/// chin.
float head_outline(Point p, const Identity& id) {
  const float x = std::fabs(p.x) / id.head.x;
  const float y = std::fabs(p.y) / id.head.y;
  const float exponent = p.y > 0 ? id.chin : 2;
  const float norm = std::pow(std::pow(x, exponent) + std::pow(y, exponent), 1 / exponent);
  return (norm - 1) * id.head.x;
}

/// Paints one pixel of a face after the other. Points are in the frame of the upright head: `p` on
/// the picture's plane, `q` on the head's surface, which turns with yaw and pitch.
class FacePainter {
 public:
  FacePainter(const Identity& id, const Shot& shot) : id_(id), shot_(shot) {}

  void paint(Point p, Paint& paint) const {
    paint.begin_subject();
    hair_behind(p, paint);
    body(p, paint);
    ears(p, paint);
    const float outline = head_outline(p, id_);
    paint.cover(outline, id_.skin);
    if (outline < 0.1F) {
      const Point q = on_surface(p);
      if (outline < 0) face(q, paint);
      hair_front(p, q, paint);
      glasses(q, paint);
    }
    shade(p, paint);
  }

 private:
  /// Which point of the surface is seen at p: the head as an ellipsoid, turned to the side and up.
  Point on_surface(Point p) const {
    const float y = std::clamp(p.y / id_.head.y, -0.98F, 0.98F);
    const float radius = id_.head.x * 1.15F * std::sqrt(1 - 0.7F * y * y);
    const float side = std::asin(std::clamp(p.x / radius, -0.99F, 0.99F)) - shot_.yaw;
    return {radius * std::sin(std::clamp(side, -1.5F, 1.5F)), p.y - shot_.pitch * (1 - y * y)};
  }

  void hair_behind(Point p, Paint& paint) const {
    if (id_.style == HairStyle::kLong) {
      const Point radii{id_.head.x * 1.22F, id_.head.y * 1.25F};
      paint.cover(std::max(ellipse(p, {0, 0.1F}, radii), p.y - 0.85F), hair_at(p, 0.75F));
    } else if (id_.style == HairStyle::kCurly) {
      const float waves = 0.03F * std::sin(18 * p.x) * std::sin(18 * p.y);
      const Point radii{id_.head.x * 1.25F, id_.head.y * 0.95F};
      paint.cover(ellipse(p, {0, -0.22F}, radii) + waves, hair_at(p, 0.8F));
    }
  }

  void body(Point p, Paint& paint) const {
    paint.cover(box(p, {0, 0.75F}, {id_.head.x * 0.55F, 0.35F}), scaled(id_.skin, 0.75F));
    paint.cover(ellipse(p, {0, 1.45F}, {0.95F, 0.6F}), shot_.cloth);
  }

  void ears(Point p, Paint& paint) const {
    for (const float side : {-1.0F, 1.0F}) {
      // The ear on the far side hides behind the head.
      const float x = side * id_.head.x * (1 - 0.25F * side * shot_.yaw);
      const Point centre{x, id_.eye_height + 0.1F};
      paint.cover(ellipse(p, centre, {id_.ear_size * 0.55F, id_.ear_size}),
                  scaled(id_.skin, 0.85F));
      paint.cover(ellipse(p, centre, {id_.ear_size * 0.28F, id_.ear_size * 0.6F}),
                  scaled(id_.skin, 0.65F));
    }
  }

  void face(Point q, Paint& paint) const {
    for (const float side : {-1.0F, 1.0F}) {
      paint.blend(ellipse(q, {side * 0.27F, 0.2F}, {0.1F, 0.08F}), 0.15F, {0.85F, 0.35F, 0.32F},
                  0.35F * id_.blush);
      eye(q, side, paint);
      brow(q, side, paint);
    }
    for (const Point& mole : id_.moles)
      paint.cover(ellipse(q, mole, {0.018F, 0.018F}), {0.22F, 0.12F, 0.08F}, 0.85F);
    beard(q, paint);
    nose(q, paint);
    mouth(q, paint);
  }

  void eye(Point q, float side, Paint& paint) const {
    const Point centre{side * id_.eye_distance, id_.eye_height};
    const Point e = turned({q.x - centre.x, q.y - centre.y}, side * id_.eye_tilt);
    const float open = id_.eye.y * (1 - 0.95F * shot_.closed_eyes);
    paint.blend(ellipse(e, {}, {id_.eye.x * 1.4F, id_.eye.y * 2.0F}), 0.06F,
                scaled(id_.skin, 0.72F), 0.6F);
    const float white = ellipse(e, {}, {id_.eye.x, open});
    paint.cover(white, kWhite);
    if (white < 0) {
      const Point pupil{shot_.gaze.x * id_.eye.x * 0.6F, shot_.gaze.y * id_.eye.y};
      const float radius = id_.eye.y * id_.iris_size;
      paint.cover(ellipse(e, pupil, {radius, radius}), id_.iris);
      paint.cover(ellipse(e, pupil, {radius * 0.45F, radius * 0.45F}), kDark);
      paint.cover(ellipse(e, {pupil.x + radius * 0.3F, pupil.y - radius * 0.3F}, {0.010F, 0.010F}),
                  kWhite);
    }
    paint.cover(std::fabs(white) - 0.006F, scaled(id_.brow, 0.7F), e.y < 0 ? 0.9F : 0.35F);
  }

  void brow(Point q, float side, Paint& paint) const {
    const Point centre{side * id_.eye_distance * 1.05F,
                       id_.eye_height - id_.brow_gap - 0.02F * shot_.smile};
    const Point e = turned({q.x - centre.x, q.y - centre.y}, side * id_.brow_tilt);
    const float arch = e.y + 2.0F * e.x * e.x;
    paint.cover(
        stroke({e.x, arch}, {-id_.brow_length, 0}, {id_.brow_length, 0}, id_.brow_thickness),
        id_.brow, 0.9F);
  }

  void nose(Point q, Paint& paint) const {
    const float top = id_.eye_height + 0.02F;
    const float tip = id_.eye_height + id_.nose.y;
    const float along = std::clamp((q.y - top) / (tip - top), 0.0F, 1.0F);
    const float width = id_.nose.x * (0.3F + 0.7F * along * along);
    const bool beside = q.y > top && q.y < tip;
    const float edge = std::fabs(std::fabs(q.x) - width) - 0.008F;
    if (beside) paint.blend(edge, 0.03F, scaled(id_.skin, 0.66F), 0.55F);
    paint.blend(ellipse(q, {0, tip - 0.03F}, {id_.nose.x * 0.5F, 0.03F}), 0.04F,
                mix(id_.skin, kWhite, 0.35F), 0.5F);
    paint.blend(ellipse(q, {0, tip + 0.005F}, {id_.nose.x, 0.022F}), 0.03F, scaled(id_.skin, 0.6F),
                0.7F);
    for (const float side : {-1.0F, 1.0F}) {
      paint.cover(ellipse(q, {side * id_.nose.x * 0.5F, tip}, {id_.nose.x * 0.25F, 0.014F}),
                  scaled(id_.skin, 0.3F));
    }
  }

  void mouth(Point q, Paint& paint) const {
    const float width = id_.mouth_width * (1 + 0.12F * shot_.smile);
    const float bend = 1.2F * shot_.smile * (q.x * q.x - 0.5F * width * width);
    const Point m{q.x, q.y - id_.mouth_height + bend};
    const float gap = 0.07F * shot_.open_mouth;
    const float lips = ellipse(m, {0, gap * 0.5F}, {width, id_.lip_thickness + gap});
    paint.cover(lips, id_.lips);
    if (gap > 0) {
      paint.cover(ellipse(m, {0, gap * 0.5F}, {width * 0.8F, gap}), {0.20F, 0.05F, 0.06F});
      paint.cover(box(m, {0, -gap * 0.25F}, {width * 0.55F, gap * 0.25F}), kWhite);
    } else {
      paint.cover(stroke(m, {-width * 0.95F, 0}, {width * 0.95F, 0}, 0.006F),
                  scaled(id_.lips, 0.4F));
    }
  }

  void beard(Point q, Paint& paint) const {
    if (id_.beard > 0) {
      const float line = id_.mouth_height - 0.10F - 0.6F * std::fabs(q.x);
      const float around_mouth =
          -ellipse(q, {0, id_.mouth_height}, {id_.mouth_width + 0.02F, 0.06F});
      paint.blend(std::max(line - q.y, around_mouth), 0.06F, hair_at(q, 0.8F), id_.beard);
    }
    if (id_.moustache > 0) {
      const float tip = id_.eye_height + id_.nose.y + 0.02F;
      const Point centre{0, 0.5F * (tip + id_.mouth_height)};
      paint.blend(ellipse(q, centre, {id_.mouth_width * 0.95F, 0.035F}), 0.02F, hair_at(q, 0.7F),
                  id_.moustache);
    }
  }

  /// Distance to the hair on the forehead, on the head's surface.
  float hairline(Point q) const {
    switch (id_.style) {
      case HairStyle::kBald:
        return 1;
      case HairStyle::kShort:
        return q.y - id_.hairline - 0.5F * q.x * q.x;
      case HairStyle::kFringe:
        return q.y - (id_.eye_height - 0.16F) - 0.012F * std::sin(45 * q.x);
      case HairStyle::kSideParting:
        return q.y - id_.hairline - 0.45F * (q.x + 0.12F);
      case HairStyle::kLong:
        return q.y - id_.hairline - 1.3F * q.x * q.x;
      case HairStyle::kCurly:
        return q.y - id_.hairline - 0.9F * q.x * q.x - 0.03F * std::sin(25 * q.x);
    }
    return 1;
  }

  void hair_front(Point p, Point q, Paint& paint) const {
    const float cap = ellipse(p, {0, -0.02F}, {id_.head.x * 1.06F, id_.head.y * 1.07F});
    paint.cover(std::max(cap, hairline(q)), hair_at(q, 1));
  }

  /// The hair's colour with strands.
  Color hair_at(Point p, float brightness) const {
    return scaled(id_.hair,
                  brightness * (1 + 0.10F * std::sin(90 * p.x + 12 * std::sin(3 * p.y + 5 * p.x))));
  }

  void glasses(Point q, Paint& paint) const {
    if (!id_.glasses) return;
    for (const float side : {-1.0F, 1.0F}) {
      const Point centre{side * id_.eye_distance, id_.eye_height + 0.01F};
      const float rim = ellipse(q, centre, id_.glass);
      paint.cover(std::fabs(rim) - 0.013F, id_.frame);
      if (rim < 0)
        paint.cover(
            stroke(q, {centre.x - 0.05F, centre.y + 0.03F}, {centre.x, centre.y - 0.05F}, 0.006F),
            kWhite, 0.4F);
    }
    const float inner = id_.eye_distance - id_.glass.x;
    paint.cover(stroke(q, {-inner, id_.eye_height}, {inner, id_.eye_height}, 0.012F), id_.frame);
  }

  /// Light from one side on the ellipsoid of the head.
  void shade(Point p, Paint& paint) const {
    const float x = p.x / (id_.head.x * 1.15F);
    const float y = p.y / (id_.head.y * 1.15F);
    const float z = std::sqrt(std::max(0.05F, 1 - x * x - y * y));
    const float towards = shot_.light.x * x + shot_.light.y * y;
    const float ahead =
        std::sqrt(1 - shot_.light.x * shot_.light.x - shot_.light.y * shot_.light.y);
    const float level =
        shot_.ambient + (1.15F - shot_.ambient) * std::max(0.0F, towards + ahead * z);
    paint.light(level);
  }

  const Identity& id_;
  const Shot& shot_;
};

/// From the picture (−1 to 1) to the frame of the upright head, and back.
Point to_head(Point p, const Shot& shot) {
  const Point q = turned({p.x - shot.shift.x, p.y - shot.shift.y}, shot.turn);
  return {q.x / shot.scale, q.y / shot.scale};
}
Point to_picture(Point q, const Shot& shot) {
  const Point p = turned({q.x * shot.scale, q.y * shot.scale}, -shot.turn);
  return {p.x + shot.shift.x, p.y + shot.shift.y};
}

uint8_t to_level(float value, float noise) {
  return static_cast<uint8_t>(std::clamp(value * 255 + noise + 0.5F, 0.0F, 255.0F));
}

}  // namespace

void paint_face(const Identity& identity, const Shot& shot, int size, Image& image) {
  image.reshape(size, size, 3);
  const Background background(shot.clutter);
  const float sideways = 0.5F * shot.yaw;
  const std::vector<Thing> occluders =
      draw_occluders(shot.occluders, to_picture({sideways, identity.eye_height}, shot),
                     to_picture({sideways, identity.mouth_height}, shot), shot.turn);
  const FacePainter face(identity, shot);
  RandomStream noise(shot.clutter, RandomUse::kSyntheticData, 1);
  const float pixel = 2.0F / static_cast<float>(size);
  for (int y = 0; y < size; ++y) {
    uint8_t* to = image.row(y);
    for (int x = 0; x < size; ++x, to += 3) {
      const Point p{(static_cast<float>(x) + 0.5F) * pixel - 1,
                    (static_cast<float>(y) + 0.5F) * pixel - 1};
      Paint paint(background.ground(p), pixel);
      background.paint(p, paint);
      face.paint(to_head(p, shot), paint);
      for (const Thing& thing : occluders)
        paint.cover(thing.distance(p), thing.color, thing.opacity);
      const Color color = paint.color();
      // The sum of three uniform numbers has a standard deviation of 1/2: noise enough like a
      // sensor's, and cheap.
      const auto grain = [&] {
        return 2 * shot.noise * (noise.uniform() + noise.uniform() + noise.uniform() - 1.5F);
      };
      to[0] = to_level(color.r * shot.tint.r * shot.exposure, grain());
      to[1] = to_level(color.g * shot.tint.g * shot.exposure, grain());
      to[2] = to_level(color.b * shot.tint.b * shot.exposure, grain());
    }
  }
}

}  // namespace outrigger::data::synthetic
