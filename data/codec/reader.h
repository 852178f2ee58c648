#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/decode.h"
#include "data/image.h"

namespace outrigger::data::codec {

/// A rectangle of pixels.
struct Rect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// An image as it is stored, before its EXIF orientation is applied.
struct Header {
  int width = 0;
  int height = 0;
  /// EXIF's, 1 to 8; 1 where there is none.
  int orientation = 1;
};

/// What the caller will look at.
struct Request {
  /// In stored pixels, inside the image; never empty.
  Rect region;
  /// The image may be shrunk by up to 2^max_shrink_log2 where the format does that well (JPEG: up
  /// to 3).
  int max_shrink_log2 = 0;
  /// 1 (grey) or 4 (R, G, B and a byte without meaning, so that a pixel is a 32-bit word).
  int channels = 4;
};

/// What was decoded into the image: a rectangle that covers the region asked for.
struct Decoded {
  /// Where the first pixel lies in the shrunk image.
  int x = 0;
  int y = 0;
  int shrink_log2 = 0;
};

/// Takes an image whose pixels (width x height of them) pass the limit, else throws BrokenImage.
void check_size(uint64_t width, uint64_t height, const DecodeLimits& limits, const char* format);

class FormatReader;

/// Decodes one image at a time, in two steps: open() reads the header and throws NoImage, read()
/// reads the pixels wanted and throws BrokenImage; after either the reader serves the next image.
/// The bytes must outlive both steps. One per thread.
class Reader {
 public:
  explicit Reader(DecodeLimits limits);
  ~Reader();

  Header open(std::span<const std::byte> encoded);
  Decoded read(const Request& request, Image& image);

 private:
  std::unique_ptr<FormatReader> jpeg_;
  std::unique_ptr<FormatReader> png_;
  std::unique_ptr<FormatReader> pnm_;
  FormatReader* opened_ = nullptr;
};

}  // namespace outrigger::data::codec
