#include "data/codec/reader.h"

#include <string>

#include "common/error.h"
#include "data/codec/format_reader.h"

namespace outrigger::data::codec {

void check_size(uint64_t width, uint64_t height, const DecodeLimits& limits, const char* format) {
  if (width == 0 || height == 0) throw BrokenImage(std::string(format) + " without pixels");
  // Both are below 2^32, so the product cannot overflow.
  if (width * height > limits.max_pixels || width > INT32_MAX || height > INT32_MAX) {
    throw BrokenImage(std::string(format) + " of " + std::to_string(width) + "x" +
                      std::to_string(height) + " pixels; at most " +
                      std::to_string(limits.max_pixels) + " pixels are decoded");
  }
}

Reader::Reader(DecodeLimits limits)
    : jpeg_(make_jpeg_reader(limits)),
      png_(make_png_reader(limits)),
      pnm_(make_pnm_reader(limits)) {}

Reader::~Reader() = default;

Header Reader::open(std::span<const std::byte> encoded) {
  const auto at = [&](size_t i) {
    return i < encoded.size() ? std::to_integer<int>(encoded[i]) : -1;
  };
  if (at(0) == 0xFF && at(1) == 0xD8) {
    opened_ = jpeg_.get();
  } else if (at(0) == 0x89 && at(1) == 'P' && at(2) == 'N' && at(3) == 'G') {
    opened_ = png_.get();
  } else if (at(0) == 'P' && (at(1) == '2' || at(1) == '3' || at(1) == '5' || at(1) == '6')) {
    opened_ = pnm_.get();
  } else {
    throw NoImage(encoded.empty() ? "an image of 0 bytes" : "neither JPEG, PNG, PGM nor PPM");
  }
  try {
    return opened_->open(encoded);
  } catch (const BrokenImage& error) {
    throw NoImage(error.what());
  }
}

Decoded Reader::read(const Request& request, Image& image) {
  ensure(opened_ != nullptr, "an image is read after its header");
  return opened_->read(request, image);
}

}  // namespace outrigger::data::codec
