#include "data/synthetic/face_model.h"

#include <cmath>

namespace outrigger::data::synthetic {
namespace {

/// Streams of one person: what is drawn for the person, and for each picture.
constexpr uint32_t kOfPerson = 0;
constexpr uint32_t kOfPicture = 1;

constexpr std::array<Color, 5> kSkins = {{{0.96F, 0.82F, 0.72F},
                                          {0.89F, 0.71F, 0.57F},
                                          {0.76F, 0.56F, 0.41F},
                                          {0.56F, 0.38F, 0.27F},
                                          {0.38F, 0.25F, 0.18F}}};
constexpr std::array<Color, 6> kHairs = {{{0.08F, 0.07F, 0.07F},
                                          {0.25F, 0.15F, 0.08F},
                                          {0.45F, 0.27F, 0.12F},
                                          {0.83F, 0.67F, 0.36F},
                                          {0.60F, 0.24F, 0.10F},
                                          {0.62F, 0.61F, 0.60F}}};
constexpr std::array<Color, 4> kIrises = {
    {{0.28F, 0.17F, 0.08F}, {0.22F, 0.42F, 0.62F}, {0.27F, 0.45F, 0.25F}, {0.42F, 0.44F, 0.46F}}};

/// A color between two neighbours of the palette.
template <size_t size>
Color from_palette(RandomStream& random, const std::array<Color, size>& palette) {
  const uint32_t first = random.below(size - 1);
  return mix(palette[first], palette[first + 1], random.uniform());
}

void draw_head(RandomStream& r, Identity& id) {
  id.skin = from_palette(r, kSkins);
  id.hair = from_palette(r, kHairs);
  id.head = {between(r, 0.44F, 0.60F), between(r, 0.62F, 0.78F)};
  id.chin = between(r, 1.7F, 3.0F);
  id.ear_size = between(r, 0.07F, 0.15F);
  id.style = static_cast<HairStyle>(r.below(6));
  id.hairline = between(r, -0.50F, -0.34F);
  id.blush = between(r, 0, 0.5F);
}

void draw_eyes(RandomStream& r, Identity& id) {
  id.iris = kIrises[r.below(kIrises.size())];
  id.eye_distance = between(r, 0.17F, 0.27F);
  id.eye_height = between(r, -0.16F, -0.02F);
  id.eye = {between(r, 0.07F, 0.12F), between(r, 0.030F, 0.065F)};
  id.eye_tilt = between(r, -0.25F, 0.25F);
  id.iris_size = between(r, 0.8F, 1.2F);
  id.brow = mix(id.hair, {0.1F, 0.08F, 0.06F}, between(r, 0.1F, 0.6F));
  id.brow_gap = between(r, 0.09F, 0.17F);
  id.brow_length = between(r, 0.08F, 0.14F);
  id.brow_thickness = between(r, 0.012F, 0.040F);
  id.brow_tilt = between(r, -0.35F, 0.35F);
  id.glasses = r.below(4) == 0;
  id.glass = {between(r, 0.12F, 0.16F), between(r, 0.08F, 0.14F)};
  id.frame = mix({0.05F, 0.05F, 0.05F}, random_color(r), 0.4F);
}

void draw_lower_face(RandomStream& r, Identity& id) {
  id.lips = mix(id.skin, {0.70F, 0.20F, 0.22F}, between(r, 0.25F, 0.8F));
  id.nose = {between(r, 0.06F, 0.14F), between(r, 0.17F, 0.30F)};
  id.mouth_height = between(r, 0.30F, 0.43F);
  id.mouth_width = between(r, 0.12F, 0.25F);
  id.lip_thickness = between(r, 0.018F, 0.050F);
  id.beard = r.below(4) == 0 ? between(r, 0.4F, 0.9F) : 0;
  id.moustache = r.below(5) == 0 ? between(r, 0.5F, 0.95F) : 0;
  const uint32_t moles = r.below(4);
  for (uint32_t i = 0; i < moles; ++i)
    id.moles.push_back({between(r, -0.35F, 0.35F), between(r, -0.1F, 0.5F)});
}

}  // namespace

float between(RandomStream& random, float low, float high) {
  return low + (high - low) * random.uniform();
}

Color mix(const Color& a, const Color& b, float part) {
  return {a.r + (b.r - a.r) * part, a.g + (b.g - a.g) * part, a.b + (b.b - a.b) * part};
}

Color random_color(RandomStream& random) {
  const float r = random.uniform();
  const float g = random.uniform();
  return {r, g, random.uniform()};
}

Identity draw_identity(uint64_t seed, uint32_t index) {
  RandomStream random(seed, RandomUse::kSyntheticData, uint64_t{index} << 32, kOfPerson);
  Identity id;
  draw_head(random, id);
  draw_eyes(random, id);
  draw_lower_face(random, id);
  return id;
}

Shot draw_shot(uint64_t seed, uint32_t index, uint32_t picture) {
  RandomStream r(seed, RandomUse::kSyntheticData, uint64_t{index} << 32 | picture, kOfPicture);
  Shot shot;
  shot.turn = between(r, -0.20F, 0.20F);
  shot.yaw = between(r, -0.35F, 0.35F);
  shot.pitch = between(r, -0.08F, 0.08F);
  shot.scale = between(r, 0.90F, 1.14F);
  shot.shift = {between(r, -0.11F, 0.11F), between(r, -0.10F, 0.10F)};
  const float angle = between(r, 0, 6.2831853F);
  const float strength = between(r, 0.1F, 0.75F);
  shot.light = {strength * std::cos(angle), strength * std::sin(angle)};
  shot.ambient = between(r, 0.35F, 0.70F);
  shot.exposure = between(r, 0.70F, 1.25F);
  shot.tint = {between(r, 0.88F, 1.12F), between(r, 0.94F, 1.06F), between(r, 0.86F, 1.14F)};
  shot.smile = between(r, -0.6F, 1);
  shot.open_mouth = r.below(3) == 0 ? between(r, 0.2F, 1) : 0;
  shot.closed_eyes = r.below(8) == 0 ? between(r, 0.5F, 1) : between(r, 0, 0.25F);
  shot.gaze = {between(r, -0.4F, 0.4F), between(r, -0.2F, 0.2F)};
  shot.cloth = random_color(r);
  shot.noise = between(r, 1, 9);
  shot.quality = 55 + static_cast<int>(r.below(41));
  shot.clutter = r.next_u64();
  shot.occluders = r.next_u64();
  return shot;
}

}  // namespace outrigger::data::synthetic
