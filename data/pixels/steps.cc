#include "data/pixels/steps.h"

#include <cstdio>
#include <string>

#include "common/error.h"
#include "data/pixels/color.h"
#include "data/pixels/draw.h"

namespace outrigger::data::pixels {
namespace {

constexpr int64_t kUnit = 1 << kUnitBits;
constexpr int kMaxSide = 1 << 15;

/// Refuses a value outside [low, high] (not a number too), naming `field` as the user wrote it.
void check(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s is %g; allowed is %g to %g", field, value, low, high);
  throw InvalidInput(text);
}

void check_order(const std::string& step, const char* low, const char* high, double low_value,
                 double high_value) {
  if (low_value <= high_value) return;
  throw InvalidInput(step + "." + low + " is greater than " + step + "." + high);
}

template <typename Options>
BoxDistribution make_distribution(const std::string& step, const Options& o) {
  check((step + ".minScale").c_str(), o.min_scale, 0.0001, 1);
  check((step + ".maxScale").c_str(), o.max_scale, 0.0001, 1);
  check_order(step, "minScale", "maxScale", o.min_scale, o.max_scale);
  check((step + ".minAspect").c_str(), o.min_aspect, 0.1, 10);
  check((step + ".maxAspect").c_str(), o.max_aspect, 0.1, 10);
  check_order(step, "minAspect", "maxAspect", o.min_aspect, o.max_aspect);
  return {to_units(o.min_scale),
          to_units(o.max_scale),
          {to_units(o.min_aspect), to_units(o.max_aspect)}};
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

class CentreCropStep final : public Step {
 public:
  CentreCropStep(const CentreCrop& o, const Size& size)
      : size_{o.height == 0 ? size.height : o.height, o.width == 0 ? size.width : o.width} {
    check("centreCrop.height", o.height, 0, kMaxSide);
    check("centreCrop.width", o.width, 0, kMaxSide);
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
      : boxes_(make_distribution("randomResizedCrop", o)),
        size_(size),
        min_aspect_(to_units(o.min_aspect)),
        max_aspect_(to_units(o.max_aspect)) {}
  void apply(Canvas& canvas, RandomStream& random) const override {
    View& view = canvas.view();
    Box box;
    if (!draw_box(random, boxes_, view.width(), view.height(), box)) {
      box = middle_box(view.width(), view.height(), min_aspect_, max_aspect_);
    }
    view.crop(box, true);
    view.set_size(size_.width, size_.height);
  }

 private:
  BoxDistribution boxes_;
  Size size_;
  int64_t min_aspect_;
  int64_t max_aspect_;
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
        boxes_(make_distribution("randomErasing", o)),
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
  Result operator()(const CentreCrop& o) const { return std::make_unique<CentreCropStep>(o, size); }
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
