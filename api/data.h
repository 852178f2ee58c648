#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace outrigger::api {

enum class DataFormat { kImageFolder, kWebDataset };
enum class Sampling { kUniform, kClassBalanced };

std::string_view to_string(DataFormat value);
std::string_view to_string(Sampling value);

/// Where samples lie: exactly one of path and urls.
struct DataSource {
  std::optional<std::string>
      path;  // ImageFolder: a folder of class folders; WebDataset: a folder of .tar files
  std::vector<std::string> urls;  // WebDataset only: http(s) addresses of shards
  DataFormat format = DataFormat::kImageFolder;
  bool operator==(const DataSource&) const = default;
};

/// Sharded order: blocks of samples, shuffled within a window of this many samples.
struct ShuffleSpec {
  int64_t window = 0;
  bool operator==(const ShuffleSpec&) const = default;
};

/// The images as the network gets them.
struct ImageSpec {
  int height = 0;
  int width = 0;
  int channels = 3;  // 1 or 3
  bool operator==(const ImageSpec&) const = default;
};

struct RandomHorizontalFlip {
  double probability = 0.5;
  bool operator==(const RandomHorizontalFlip&) const = default;
};
/// A random part of the image, of this share of its area and this width/height ratio, resized to
/// `data.image`.
struct RandomResizedCrop {
  double min_scale = 0.08;
  double max_scale = 1.0;
  double min_ratio = 0.75;
  double max_ratio = 4.0 / 3.0;
  bool operator==(const RandomResizedCrop&) const = default;
};
/// Resizes so that the shorter side has this many pixels.
struct Resize {
  int shorter_side = 0;
  bool operator==(const Resize&) const = default;
};
/// Cuts `data.image` out of the middle.
struct CenterCrop {
  bool operator==(const CenterCrop&) const = default;
};
/// Each factor is drawn from [1 - x, 1 + x]; hue is turned by up to x of a full circle.
struct ColorJitter {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
  bool operator==(const ColorJitter&) const = default;
};
/// Turned by an angle from [-degrees, degrees].
struct RandomRotation {
  double degrees = 0;
  bool operator==(const RandomRotation&) const = default;
};
/// With `probability` a rectangle of this share of the area is painted over.
struct RandomErasing {
  double probability = 0.5;
  double min_area = 0.02;
  double max_area = 1.0 / 3.0;
  double min_ratio = 0.3;
  double max_ratio = 3.3;
  bool operator==(const RandomErasing&) const = default;
};

/// One step of augmentation; in the file an object with one member, `{randomHorizontalFlip: {}}`.
using Augmentation = std::variant<RandomHorizontalFlip, RandomResizedCrop, Resize, CenterCrop,
                                  ColorJitter, RandomRotation, RandomErasing>;

/// `spec.data`.
struct DataSpec {
  std::optional<std::string>
      volume_claim_name;  // mounted at kDataMountPath, read-only, in both roles
  DataSource train;
  std::optional<DataSource> validation;
  Sampling sampling = Sampling::kUniform;
  std::optional<ShuffleSpec> shuffle;  // absent: one full permutation an epoch
  ImageSpec image;
  /// Applied in order while training. Where none of them crops, the image is resized to cover
  /// `image` and its middle is cut out; so it is for evaluation, always.
  std::vector<Augmentation> augment;
  double max_bad_fraction = 0.01;
  bool operator==(const DataSpec&) const = default;
};

}  // namespace outrigger::api
