#include "data/codec/reader.h"

#include <string>

#include "data/codec/jpeg_reader.h"
#include "data/codec/png_reader.h"
#include "data/codec/pnm_reader.h"

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
    : jpeg_(std::make_unique<JpegReader>(limits)),
      png_(std::make_unique<PngReader>(limits)),
      pnm_(std::make_unique<PnmReader>(limits)) {}

Reader::~Reader() = default;

Header Reader::open(std::span<const std::byte> encoded) {
  const auto at = [&](size_t i) {
    return i < encoded.size() ? std::to_integer<int>(encoded[i]) : -1;
  };
  if (at(0) == 0xFF && at(1) == 0xD8) {
    format_ = Format::kJpeg;
    return jpeg_->open(encoded);
  }
  if (at(0) == 0x89 && at(1) == 'P' && at(2) == 'N' && at(3) == 'G') {
    format_ = Format::kPng;
    return png_->open(encoded);
  }
  if (at(0) == 'P' && (at(1) == '2' || at(1) == '3' || at(1) == '5' || at(1) == '6')) {
    format_ = Format::kPnm;
    return pnm_->open(encoded);
  }
  throw BrokenImage(encoded.empty() ? "an image of 0 bytes" : "neither JPEG, PNG, PGM nor PPM");
}

Decoded Reader::read(const Request& request, Image& image) {
  switch (format_) {
    case Format::kJpeg:
      return jpeg_->read(request, image);
    case Format::kPng:
      return png_->read(request, image);
    case Format::kPnm:
      return pnm_->read(request, image);
  }
  impossible("image format");
}

}  // namespace outrigger::data::codec
