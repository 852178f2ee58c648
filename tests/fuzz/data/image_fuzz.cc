// Any bytes as an image: either BrokenImage, or pixels, the same ones each time and whatever was
// decoded before.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/error.h"
#include "data/pipeline.h"

namespace {

using namespace outrigger;

/// Small limits: the fuzzer is to look for errors, not to fill memory with pixels.
constexpr data::DecodeLimits kLimits{.max_pixels = 1 << 18, .max_scans = 20};

data::PipelineOptions options() {
  data::PipelineOptions result;
  result.height = 24;
  result.width = 32;
  result.augment = {data::RandomHorizontalFlip{}, data::RandomResizedCrop{},
                    data::ColorJitter{0.5, 0.5, 0.5, 0.2}, data::RandomRotation{30},
                    data::RandomErasing{}};
  return result;
}

/// Nothing of a broken image.
std::optional<std::vector<std::byte>> train(const data::Pipeline& pipeline,
                                            std::span<const std::byte> encoded,
                                            data::Pipeline::Scratch& scratch) {
  std::vector<std::byte> pixels(pipeline.pixels_size());
  try {
    pipeline.train(encoded, encoded.size(), scratch, pixels);
  } catch (const data::BrokenImage&) {
    return std::nullopt;
  }
  return pixels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const data::Pipeline pipeline(options());
  static data::Pipeline::Scratch scratch(kLimits);
  static data::Decoder decoder(kLimits);
  const auto encoded = std::as_bytes(std::span(bytes, size));
  data::Pipeline::Scratch fresh(kLimits);
  const auto first = train(pipeline, encoded, scratch);
  ensure(first == train(pipeline, encoded, fresh), "the same bytes and slot give the same pixels");
  std::vector<std::byte> pixels(pipeline.pixels_size());
  data::Image image;
  try {
    pipeline.evaluate(encoded, scratch, pixels);
  } catch (const data::BrokenImage&) {
  }
  for (const int channels : {1, 3}) {
    try {
      decoder.decode(encoded, channels, image);
    } catch (const data::BrokenImage&) {
    }
  }
  return 0;
}
