#include "data/pixels/steps.h"

#include <cstdio>
#include <string>

#include "common/error.h"
#include "data/pixels/color.h"
#include "data/pixels/draw.h"

namespace outrigger::data::pixels {
namespace {

constexpr int kMaxSide = 1 << 15;

/// Refuses a value outside [low, high] (not a number too), naming `field` as the user wrote it.
void check(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s is %g; allowed is %g to %g", field, value, low, high);
  throw InvalidInput(text);
}

void check_order(const std::string& step, const char* low, const char* high, bool ordered) {
  if (!ordered) throw InvalidInput(step + "." + low + " is greater than " + step + "." + high);
}

/// Bounds of a random box, under the names that the user gave them.
struct BoxOptions {
  std::string step;
  const char* low_area_name;
  const char* high_area_name;
  double low_area;
  double high_area;
  double low_ratio;
  double high_ratio;
};

BoxDistribution make_distribution(const BoxOptions& o) {
  check((o.step + "." + o.low_area_name).c_str(), o.low_area, 0.0001, 1);
  check((o.step + "." + o.high_area_name).c_str(), o.high_area, 0.0001, 1);
  check_order(o.step, o.low_area_name, o.high_area_name, o.low_area <= o.high_area);
  check((o.step + ".minRatio").c_str(), o.low_ratio, 0.1, 10);
  check((o.step + ".maxRatio").c_str(), o.high_ratio, 0.1, 10);
  check_order(o.step, "minRatio", "maxRatio", o.low_ratio <= o.high_ratio);
  return {
      to_units(o.low_area), to_units(o.high_area), {to_units(o.low_ratio), to_units(o.high_ratio)}};
}

class ResizeStep final : public Step {
 public:
  explicit ResizeStep(const Resize& o) : length_(o.shorter_side) {
    check("resize.shorterSide", length_, 1, kMaxSide);
  }
  void apply(Canvas& canvas, RandomStream&) const override {
    canvas.view().resize_shorter(length_);
  }

 private:
  int length_;
};

class CenterCropStep final : public Step {
 public:
  CenterCropStep(const CenterCrop& o, const Size& size)
      : size_{o.height == 0 ? size.height : o.height, o.width == 0 ? size.width : o.width} {
    check("centerCrop.height", o.height, 0, kMaxSide);
    check("centerCrop.width", o.width, 0, kMaxSide);
  }
  void apply(Canvas& canvas, RandomStream&) const override {
    canvas.view().crop_middle(size_.width, size_.height);
  }

 private:
  Size size_;
};

class RandomResizedCropStep final : public Step {
 public:
  RandomResizedCropStep(const RandomResizedCrop& o, const Size& size)
      : boxes_(make_distribution({"randomResizedCrop", "minScale", "maxScale", o.min_scale,
                                  o.max_scale, o.min_ratio, o.max_ratio})),
        size_(size),
        min_ratio_(to_units(o.min_ratio)),
        max_ratio_(to_units(o.max_ratio)) {}
  void apply(Canvas& canvas, RandomStream& random) const override {
    View& view = canvas.view();
    Box box;
    if (!draw_box(random, boxes_, view.width(), view.height(), box)) {
      box = middle_box(view.width(), view.height(), min_ratio_, max_ratio_);
    }
    view.crop(box, true);
    view.set_size(size_.width, size_.height);
  }

 private:
  BoxDistribution boxes_;
  Size size_;
  int64_t min_ratio_;
  int64_t max_ratio_;
};

class FlipStep final : public Step {
 public:
  explicit FlipStep(const RandomHorizontalFlip& o) : probability_(to_units(o.probability)) {
    check("randomHorizontalFlip.probability", o.probability, 0, 1);
  }
  void apply(Canvas& canvas, RandomStream& random) const override {
    if (draw_chance(random, probability_)) canvas.view().mirror();
  }

 private:
  int64_t probability_;
};

class ColorJitterStep final : public Step {
 public:
  explicit ColorJitterStep(const ColorJitter& o)
      : amounts_{to_units(o.brightness), to_units(o.contrast), to_units(o.saturation),
                 to_units(o.hue)} {
    check("colorJitter.brightness", o.brightness, 0, 10);
    check("colorJitter.contrast", o.contrast, 0, 10);
    check("colorJitter.saturation", o.saturation, 0, 10);
    check("colorJitter.hue", o.hue, 0, 0.5);
  }
  void apply(Canvas& canvas, RandomStream& random) const override {
    int order[4] = {0, 1, 2, 3};
    for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    Image& image = canvas.pixels();
    for (const int kind : order) {
      const int64_t amount = amounts_[kind];
      if (amount == 0) continue;
      const int64_t value =
          kind == kHue ? draw_between(random, -amount, amount)
                       : draw_between(random, std::max<int64_t>(0, kUnit - amount), kUnit + amount);
      kChanges[kind](image, value);
    }
  }

 private:
  static constexpr int kHue = 3;
  static constexpr void (*kChanges[])(Image&, int64_t) = {change_brightness, change_contrast,
                                                          change_saturation, change_hue};
  int64_t amounts_[4];
};

class RotationStep final : public Step {
 public:
  explicit RotationStep(const RandomRotation& o)
      : degrees_(to_units(o.degrees)), fill_(static_cast<uint8_t>(o.fill)) {
    check("randomRotation.degrees", o.degrees, 0, 180);
    check("randomRotation.fill", o.fill, 0, 255);
  }
  void apply(Canvas& canvas, RandomStream& random) const override {
    const Turn turn = turn_of(draw_between(random, -degrees_, degrees_));
    rotate(canvas.pixels(), turn, fill_, canvas.spare());
    canvas.take_spare();
  }

 private:
  int64_t degrees_;
  uint8_t fill_;
};

class ErasingStep final : public Step {
 public:
  explicit ErasingStep(const RandomErasing& o)
      : probability_(to_units(o.probability)),
        boxes_(make_distribution({"randomErasing", "minArea", "maxArea", o.min_area, o.max_area,
                                  o.min_ratio, o.max_ratio})),
        fill_(static_cast<uint8_t>(o.fill)) {
    check("randomErasing.probability", o.probability, 0, 1);
    check("randomErasing.fill", o.fill, 0, 255);
  }
  void apply(Canvas& canvas, RandomStream& random) const override {
    if (!draw_chance(random, probability_)) return;
    Image& image = canvas.pixels();
    Box box;
    if (draw_box(random, boxes_, image.width(), image.height(), box)) fill_box(image, box, fill_);
  }

 private:
  int64_t probability_;
  BoxDistribution boxes_;
  uint8_t fill_;
};

struct MakeStep {
  const Size& size;
  using Result = std::unique_ptr<const Step>;
  Result operator()(const Resize& o) const { return std::make_unique<ResizeStep>(o); }
  Result operator()(const CenterCrop& o) const { return std::make_unique<CenterCropStep>(o, size); }
  Result operator()(const RandomResizedCrop& o) const {
    return std::make_unique<RandomResizedCropStep>(o, size);
  }
  Result operator()(const RandomHorizontalFlip& o) const { return std::make_unique<FlipStep>(o); }
  Result operator()(const ColorJitter& o) const { return std::make_unique<ColorJitterStep>(o); }
  Result operator()(const RandomRotation& o) const { return std::make_unique<RotationStep>(o); }
  Result operator()(const RandomErasing& o) const { return std::make_unique<ErasingStep>(o); }
};

}  // namespace

std::unique_ptr<const Step> make_step(const AugmentStep& options, const Size& size) {
  return std::visit(MakeStep{size}, options);
}

}  // namespace outrigger::data::pixels
