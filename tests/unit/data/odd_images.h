#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "data/image.h"

namespace outrigger::data::testing {

/// A picture without symmetry: smooth colours, and a bright square in the upper left. {height,
/// width, 3}.
Image test_picture(int height, int width);

enum class JpegColors { kRgb, kGrey, kYcck, kAdobeCmyk, kPlainCmyk, kStoredRgb };

struct JpegRecipe {
  JpegColors colors = JpegColors::kRgb;
  bool progressive = false;
  bool arithmetic = false;
  /// Of luma, each way: 1 = no subsampling of chroma, 2 = 4:2:0.
  int sampling_x = 2;
  int sampling_y = 2;
  int orientation = 0;  // 0: no EXIF
  bool exif_big_endian = false;
  int restart_rows = 0;
  int quality = 95;
};
Bytes make_jpeg(const Image& rgb, const JpegRecipe& recipe = {});

enum class PngColors { kGrey, kGreyAlpha, kRgb, kRgba, kPalette };

struct PngRecipe {
  PngColors colors = PngColors::kRgb;
  int bits = 8;
  bool interlaced = false;
  bool transparent_color = false;  // a tRNS chunk
};
Bytes make_png(const Image& rgb, const PngRecipe& recipe = {});

/// kind: '2', '3', '5' or '6'.
Bytes make_pnm(const Image& rgb, char kind, unsigned max_value = 255);

Bytes to_bytes(std::string_view text);
/// {height, width, 1} with JPEG's luma.
Image to_grey(const Image& rgb);
/// The mean of the absolute differences of two images of one shape.
double mean_difference(const Image& a, const Image& b);
/// As EXIF's orientation says that a stored image is to be looked at, pixel by pixel from the
/// standard's table.
Image oriented(const Image& stored, int orientation);

/// The whole picture in these bytes, by a decoder of its own.
Image decode(const Bytes& bytes, int channels = 3);

}  // namespace outrigger::data::testing
