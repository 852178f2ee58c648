#pragma once

#include "data/codec/reader.h"

namespace outrigger::data::codec {

/// PGM and PPM, as text (P2, P3) and binary (P5, P6), of up to 65535 levels; see Reader. (Format:
/// netpbm's pgm(5) and ppm(5).) What follows the first image in the file is ignored.
class PnmReader {
 public:
  explicit PnmReader(DecodeLimits limits) : limits_(limits) {}

  Header open(std::span<const std::byte> encoded);
  Decoded read(const Request& request, Image& image);

 private:
  unsigned next_number(const char* what);
  unsigned next_sample();
  uint8_t next_level();
  void skip_pixels(int64_t pixels);
  void put_pixel(uint8_t* to, int channels);

  DecodeLimits limits_;
  std::span<const std::byte> rest_;
  Header header_;
  unsigned max_value_ = 255;
  bool text_ = false;
  bool grey_ = false;
};

}  // namespace outrigger::data::codec
