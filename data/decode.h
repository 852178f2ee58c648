#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/error.h"
#include "data/image.h"

namespace outrigger::data {

/// The bytes are no image that can be decoded: unknown format, broken, cut short, or too large. The
/// same bytes are broken on every machine.
class BrokenImage : public InvalidInput {
 public:
  using InvalidInput::InvalidInput;
};

/// Broken whichever part of the image is looked at, and in whatever size.
class NoImage : public BrokenImage {
 public:
  using BrokenImage::BrokenImage;
};

struct DecodeLimits {
  /// Larger images (width x height) are refused from their header, before memory is taken for them;
  /// so are those that a pipeline's steps would make larger.
  uint64_t max_pixels = uint64_t{1} << 27;
  /// Scans of a progressive JPEG; each costs a pass over the whole image.
  int max_scans = 100;
};

/// What the header says; height and width as the image is to be looked at (EXIF orientation
/// applied).
struct ImageInfo {
  int height = 0;
  int width = 0;
};

namespace pixels {
class Canvas;
}

/// Decodes JPEG (baseline, progressive, grey, CMYK and YCCK, EXIF orientation applied), PNG (all
/// kinds; transparency is ignored, the stored colours are taken; 16 bits are scaled to 8) and
/// PGM/PPM (P2, P3, P5, P6, up to 65535 grey levels). Grey becomes RGB by copying; RGB becomes grey
/// with JPEG's luma (ITU-R BT.601, 16-bit integer weights), a colour JPEG by taking its Y.
///
/// The pixels are a pure function of the bytes: fixed JPEG options (accurate integer DCT, smooth
/// chroma), which libjpeg-turbo computes with equal bits on every instruction set. One per thread;
/// keeps its state between images.
class Decoder {
 public:
  explicit Decoder(DecodeLimits limits = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Reads the header only. Throws NoImage.
  ImageInfo inspect(std::span<const std::byte> encoded);

  /// The whole image at full size with `channels` 1 or 3 into `image`. Throws BrokenImage.
  void decode(std::span<const std::byte> encoded, int channels, Image& image);

 private:
  std::unique_ptr<pixels::Canvas> canvas_;
};

}  // namespace outrigger::data
