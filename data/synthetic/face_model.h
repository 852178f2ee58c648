#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/random.h"

namespace outrigger::data::synthetic {

/// Red, green and blue, 0 to 1.
struct Color {
  float r = 0;
  float g = 0;
  float b = 0;
};

struct Point {
  float x = 0;
  float y = 0;
};

enum class HairStyle { kBald, kShort, kFringe, kSideParting, kLong, kCurly };

/// What makes a person. Lengths in units of half the picture at a face's usual size; y points down,
/// the origin lies between and a little below the eyes.
struct Identity {
  Color skin, hair, iris, lips, brow;
  Point head;              // half axes
  float chin = 2;          // exponent of the lower half: 1.6 pointed, 3 square
  float eye_distance = 0;  // from the middle
  float eye_height = 0;
  Point eye;  // half axes
  float eye_tilt = 0;
  float iris_size = 0;  // relative to the eye's height
  float brow_gap = 0;
  float brow_length = 0;
  float brow_thickness = 0;
  float brow_tilt = 0;
  Point nose;  // width at the nostrils, length
  float mouth_height = 0;
  float mouth_width = 0;
  float lip_thickness = 0;
  float ear_size = 0;
  HairStyle style = HairStyle::kShort;
  float hairline = 0;
  float beard = 0;  // 0 none to 1 full
  float moustache = 0;
  float blush = 0;
  bool glasses = false;
  Point glass;  // half axes of a lens
  Color frame;
  std::vector<Point> moles;
};

/// What differs from picture to picture of one person.
struct Shot {
  float turn = 0;  // in the picture's plane, radians
  float yaw = 0;   // radians, to the side
  float pitch = 0;
  float scale = 1;
  Point shift;
  Point light;  // where it comes from
  float ambient = 0.5F;
  float exposure = 1;
  Color tint;       // of the light, around 1
  float smile = 0;  // -1 to 1
  float open_mouth = 0;
  float closed_eyes = 0;
  Point gaze;
  Color cloth;
  float noise = 0;  // standard deviation, in grey levels
  int quality = 90;
  uint64_t clutter = 0;    // seeds the background
  uint64_t occluders = 0;  // seeds what covers the face
};

/// Person `index` of the data set.
Identity draw_identity(uint64_t seed, uint32_t index);

/// Picture `picture` of person `index`.
Shot draw_shot(uint64_t seed, uint32_t index, uint32_t picture);

/// Uniform in [low, high).
float between(RandomStream& random, float low, float high);
Color mix(const Color& a, const Color& b, float part);
Color random_color(RandomStream& random);

}  // namespace outrigger::data::synthetic
