// Any bytes as an image: either BrokenImage, or pixels, the same ones each time and whatever was
// decoded before. What is NoImage once is broken in every slot and size.

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

/// What the ways to look at the same bytes came to.
struct Found {
  bool pixels = false;
  bool no_image = false;
};

/// False: they are broken.
template <typename Look>
bool try_to(const Look& look, Found& found) {
  try {
    look();
  } catch (const data::NoImage&) {
    found.no_image = true;
    return false;
  } catch (const data::BrokenImage&) {
    return false;
  }
  found.pixels = true;
  return true;
}

/// Nothing of a broken image.
std::optional<std::vector<std::byte>> train(const data::Pipeline& pipeline,
                                            std::span<const std::byte> encoded, uint64_t slot,
                                            data::Pipeline::Scratch& scratch, Found& found) {
  std::vector<std::byte> pixels(pipeline.pixels_size());
  if (!try_to([&] { pipeline.train(encoded, slot, scratch, pixels); }, found)) return std::nullopt;
  return pixels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const data::Pipeline pipeline(options());
  static data::Pipeline::Scratch scratch(kLimits);
  static data::Decoder decoder(kLimits);
  const auto encoded = std::as_bytes(std::span(bytes, size));
  data::Pipeline::Scratch fresh(kLimits);
  Found found;
  for (const uint64_t slot : {size, size + 1}) {
    const auto first = train(pipeline, encoded, slot, scratch, found);
    ensure(first == train(pipeline, encoded, slot, fresh, found),
           "the same bytes and slot give the same pixels");
  }
  std::vector<std::byte> pixels(pipeline.pixels_size());
  data::Image image;
  try_to([&] { pipeline.evaluate(encoded, scratch, pixels); }, found);
  for (const int channels : {1, 3})
    try_to([&] { decoder.decode(encoded, channels, image); }, found);
  ensure(!found.pixels || !found.no_image, "what is no image is none wherever one looks");
  return 0;
}
