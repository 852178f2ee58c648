#pragma once

#include <variant>

namespace outrigger::data {

// The steps of an augmentation list, in the words of TrainingJob's data.augment. All arithmetic on
// pixels is in integers, all choices come from RandomStream(seed, kAugmentation, slot, index of the
// step in the list).
// ColorJitter, RandomRotation and RandomErasing work on pixels: what comes before them in the list
// is computed at its size there, so crops belong first.

/// Shorter side to `shorter_side` pixels, the other in proportion. Triangle filter, widened when it
/// shrinks (antialias).
struct Resize {
  int shorter_side = 256;
};

/// The middle `height` x `width`; an image that is smaller is first enlarged to cover it. 0: the
/// pipeline's image size.
struct CenterCrop {
  int height = 0;
  int width = 0;
};

/// A random rectangle with a part of the area uniform in [min_scale, max_scale] and an aspect
/// (width / height) log-uniform in [min_ratio, max_ratio], resized to the pipeline's image size.
/// After ten rectangles that do not fit: the largest centred one with an allowed ratio (as
/// torchvision does).
struct RandomResizedCrop {
  double min_scale = 0.08;
  double max_scale = 1.0;
  double min_ratio = 3.0 / 4.0;
  double max_ratio = 4.0 / 3.0;
};

struct RandomHorizontalFlip {
  double probability = 0.5;
};

/// Brightness, contrast and saturation are multiplied by a factor uniform in [max(0, 1 − x), 1 +
/// x]; the hue is turned by a part of the circle uniform in [−hue, hue], hue <= 0.5. In random
/// order. Saturation and hue leave grey images alone.
struct ColorJitter {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
};

/// Turns around the middle by an angle uniform in [−degrees, degrees], counter-clockwise positive,
/// bilinear; what comes into view is `fill`.
struct RandomRotation {
  double degrees = 10;
  int fill = 0;
};

/// Covers a random rectangle with `fill`: part of the area uniform in [min_area, max_area],
/// ratio log-uniform.
struct RandomErasing {
  double probability = 0.5;
  double min_area = 0.02;
  double max_area = 0.33;
  double min_ratio = 0.3;
  double max_ratio = 3.3;
  int fill = 128;
};

using AugmentStep = std::variant<Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip,
                                 ColorJitter, RandomRotation, RandomErasing>;

}  // namespace outrigger::data
