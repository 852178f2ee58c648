#include "api/schema/fields.h"

namespace outrigger::api::schema {

void describe(Struct<RandomHorizontalFlip>& s) {
  s.add("probability", &RandomHorizontalFlip::probability, "How often the image is mirrored.")
      .between(0, 1);
}

void describe(Struct<RandomResizedCrop>& s) {
  s.add("minScale", &RandomResizedCrop::min_scale,
        "Least share of the image's area, at least 0.0001.")
      .more_than(0)
      .between(0, 1);
  s.add("maxScale", &RandomResizedCrop::max_scale, "Largest share of the image's area.")
      .more_than(0)
      .between(0, 1);
  s.add("minRatio", &RandomResizedCrop::min_ratio, "Least width divided by height, at least 0.1.")
      .between(0.01, 100);
  s.add("maxRatio", &RandomResizedCrop::max_ratio, "Largest width divided by height, at most 10.")
      .between(0.01, 100);
}

void describe(Struct<Resize>& s) {
  s.add("shorterSide", &Resize::shorter_side, "Pixels of the shorter side afterwards.")
      .required()
      .between(1, 16384);
}

void describe(Struct<CenterCrop>&) {}

void describe(Struct<ColorJitter>& s) {
  s.add("brightness", &ColorJitter::brightness, "Factor from [1 - x, 1 + x].").between(0, 1);
  s.add("contrast", &ColorJitter::contrast, "Factor from [1 - x, 1 + x].").between(0, 1);
  s.add("saturation", &ColorJitter::saturation, "Factor from [1 - x, 1 + x].").between(0, 1);
  s.add("hue", &ColorJitter::hue, "Turn by up to this part of the colour circle, either way.")
      .between(0, 0.5);
}

void describe(Struct<RandomRotation>& s) {
  s.add("degrees", &RandomRotation::degrees, "Turn by up to this angle, either way.")
      .required()
      .between(0, 180);
}

void describe(Struct<RandomErasing>& s) {
  s.add("probability", &RandomErasing::probability, "How often a rectangle is painted over.")
      .between(0, 1);
  s.add("minArea", &RandomErasing::min_area, "Least share of the image's area, at least 0.0001.")
      .more_than(0)
      .between(0, 1);
  s.add("maxArea", &RandomErasing::max_area, "Largest share of the image's area.")
      .more_than(0)
      .between(0, 1);
  s.add("minRatio", &RandomErasing::min_ratio, "Least width divided by height, at least 0.1.")
      .between(0.01, 100);
  s.add("maxRatio", &RandomErasing::max_ratio, "Largest width divided by height, at most 10.")
      .between(0.01, 100);
}

void describe(Struct<Augmentation>& s) {
  const auto itself = [](auto& augmentation) -> auto& { return augmentation; };
  s.alternative<RandomHorizontalFlip>("randomHorizontalFlip", itself, "Mirrors some images.");
  s.alternative<RandomResizedCrop>(
      "randomResizedCrop", itself,
      "Takes a random part of the image and resizes it to data.image.");
  s.alternative<Resize>("resize", itself, "Resizes, the ratio of the sides kept.");
  s.alternative<CenterCrop>("centerCrop", itself, "Cuts data.image out of the middle.");
  s.alternative<ColorJitter>("colorJitter", itself,
                             "Changes brightness, contrast, saturation and hue.");
  s.alternative<RandomRotation>("randomRotation", itself, "Turns the image about its middle.");
  s.alternative<RandomErasing>("randomErasing", itself, "Paints a random rectangle over.");
}

void describe(Struct<DataSource>& s) {
  s.add("path", &DataSource::path,
        "ImageFolder: a folder with a folder of images for each class. WebDataset: a folder of "
        ".tar shards. Exactly "
        "one of path and urls is given.")
      .absent("urls are given");
  s.add("urls", &DataSource::urls,
        "Addresses of WebDataset shards, in order. Not built yet: refused with NotSupported.")
      .absent("path is given")
      .most_items(10'000)
      .longest(512)
      .form(kUrlForm);
  s.add("format", &DataSource::format, "How the samples are stored.");
}

void describe(Struct<ShuffleSpec>& s) {
  s.add("window", &ShuffleSpec::window, "Samples that are shuffled among each other.")
      .required()
      .between(1, kMostSteps);
}

void describe(Struct<ImageSpec>& s) {
  s.add("height", &ImageSpec::height, "Rows of pixels that the network gets.")
      .required()
      .between(1, 8192);
  s.add("width", &ImageSpec::width, "Pixels of each row.").required().between(1, 8192);
  s.add("channels", &ImageSpec::channels, "3: red, green, blue; 1: grey. Images are converted.")
      .between(1, 3);
}

void describe(Struct<DataSpec>& s) {
  s.add("volumeClaimName", &DataSpec::volume_claim_name,
        "PersistentVolumeClaim with the data, mounted read-only at /data in both roles.")
      .absent("no volume; paths are those of the image or the machine")
      .longest(253)
      .form(kObjectNameForm);
  s.add("train", &DataSpec::train, "Samples to train on.").required();
  s.add("validation", &DataSpec::validation, "Samples to evaluate on.").absent("no evaluation");
  s.add("sampling", &DataSpec::sampling,
        "Uniform: every sample once an epoch. ClassBalanced: a class at random, then one of its "
        "images at random.");
  s.add("shuffle", &DataSpec::shuffle,
        "Order by blocks, shuffled within a window; for data that is read in sequence.")
      .absent("one full permutation an epoch");
  s.add("image", &DataSpec::image, "Size of the images as the network gets them.").required();
  s.add("augment", &DataSpec::augment,
        "Steps of augmentation, in order. Where none crops, the image is resized to cover "
        "data.image and its middle "
        "is cut out, as evaluation does always.")
      .absent("none")
      .most_items(32);
  s.add("maxBadFraction", &DataSpec::max_bad_fraction,
        "More broken samples than this part of the training data fail the job.")
      .between(0, 1);
}

}  // namespace outrigger::api::schema
