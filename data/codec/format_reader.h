#pragma once

#include <memory>
#include <span>

#include "data/codec/reader.h"

namespace outrigger::data::codec {

/// What Reader asks of each format: the same two steps, for bytes that begin as the format's do.
class FormatReader {
 public:
  virtual ~FormatReader() = default;
  virtual Header open(std::span<const std::byte> encoded) = 0;
  virtual Decoded read(const Request& request, Image& image) = 0;
};

/// Through libjpeg-turbo. Decodes only the columns and rows asked for, and shrinks in the DCT
/// domain.
std::unique_ptr<FormatReader> make_jpeg_reader(const DecodeLimits& limits);

/// Through libpng. Every row is decoded, so damage is found wherever it is, and is NoImage; never
/// shrinks.
std::unique_ptr<FormatReader> make_png_reader(const DecodeLimits& limits);

/// PGM and PPM, as text (P2, P3) and binary (P5, P6), of up to 65535 levels. (Format: netpbm's
/// pgm(5) and ppm(5).) What follows the first image in the file is ignored.
std::unique_ptr<FormatReader> make_pnm_reader(const DecodeLimits& limits);

}  // namespace outrigger::data::codec
