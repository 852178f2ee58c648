// Any bytes as an image: either BrokenImage, or pixels, the same ones each time.

#include <cstddef>
#include <cstdint>
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const data::Pipeline pipeline(options());
  static data::Pipeline::Scratch scratch(kLimits);
  static data::Decoder decoder(kLimits);
  const auto encoded = std::as_bytes(std::span(bytes, size));
  std::vector<std::byte> first(pipeline.pixels_size());
  std::vector<std::byte> second(pipeline.pixels_size());
  data::Image image;
  try {
    pipeline.train(encoded, size, scratch, first);
    pipeline.train(encoded, size, scratch, second);
    ensure(first == second, "the same bytes and slot give the same pixels");
    pipeline.evaluate(encoded, scratch, second);
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
