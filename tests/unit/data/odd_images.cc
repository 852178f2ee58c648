#include "odd_images.h"

#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

#include <cmath>
#include <cstdlib>

#include "data/codec/rows.h"
#include "data/decode.h"

namespace outrigger::data::testing {
namespace {

/// A row of parabolas, with the four basic operations alone: the same on every machine.
uint8_t wave(double x) {
  const double part = x / 3 - std::floor(x / 3);
  return static_cast<uint8_t>(30 + 4 * 200 * part * (1 - part));
}

/// The EXIF payload with nothing but an orientation.
std::string exif_payload(int orientation, bool big_endian) {
  const char value = static_cast<char>(orientation);
  using std::string_literals::operator""s;
  const std::string prefix = "Exif\0\0"s;
  if (big_endian) {
    return prefix + "MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + value + "\0\0\0\0\0\0"s;
  }
  return prefix + "II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + value + "\0\0\0\0\0\0\0"s;
}

/// The rows that go into the encoder, in the colours it wants.
std::vector<uint8_t> jpeg_input(const Image& rgb, JpegColors colors) {
  const size_t pixels = rgb.size() / 3;
  const auto from = rgb.pixels();
  if (colors == JpegColors::kRgb || colors == JpegColors::kStoredRgb)
    return {from.begin(), from.end()};
  std::vector<uint8_t> to;
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* p = &from[3 * i];
    if (colors == JpegColors::kGrey) {
      to.push_back(codec::luma(p[0], p[1], p[2]));
    } else {
      // No black ink: cyan, magenta and yellow are what red, green and blue lack; Adobe stores them
      // inverted.
      const uint8_t flip = colors == JpegColors::kPlainCmyk ? 255 : 0;
      for (int c = 0; c < 3; ++c) to.push_back(p[c] ^ flip);
      to.push_back(255 ^ flip);
    }
  }
  return to;
}

void choose_colors(jpeg_compress_struct& info, JpegColors colors) {
  const bool inked = colors == JpegColors::kYcck || colors == JpegColors::kAdobeCmyk ||
                     colors == JpegColors::kPlainCmyk;
  info.input_components = colors == JpegColors::kGrey ? 1 : inked ? 4 : 3;
  info.in_color_space = colors == JpegColors::kGrey ? JCS_GRAYSCALE : inked ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  if (colors == JpegColors::kYcck) jpeg_set_colorspace(&info, JCS_YCCK);
  if (colors == JpegColors::kAdobeCmyk || colors == JpegColors::kPlainCmyk)
    jpeg_set_colorspace(&info, JCS_CMYK);
  if (colors == JpegColors::kStoredRgb) jpeg_set_colorspace(&info, JCS_RGB);
  if (colors == JpegColors::kPlainCmyk) info.write_Adobe_marker = FALSE;
}

}  // namespace

Image test_picture(int height, int width) {
  Image image(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double u = static_cast<double>(x) / width;
      const double v = static_cast<double>(y) / height;
      uint8_t* p = image.row(y) + 3 * x;
      p[0] = wave(4 * u + 1);
      p[1] = wave(3 * v + 2 * u);
      p[2] = wave(5 * v - u);
      if (u > 0.1 && u < 0.3 && v > 0.1 && v < 0.25) p[0] = p[1] = p[2] = 250;
    }
  }
  return image;
}

Bytes make_jpeg(const Image& rgb, const JpegRecipe& recipe) {
  jpeg_error_mgr errors;
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(rgb.width());
  info.image_height = static_cast<JDIMENSION>(rgb.height());
  choose_colors(info, recipe.colors);
  jpeg_set_quality(&info, recipe.quality, TRUE);
  info.arith_code = recipe.arithmetic ? TRUE : FALSE;
  info.restart_in_rows = recipe.restart_rows;
  if (recipe.progressive) jpeg_simple_progression(&info);
  if (info.num_components >= 3) {
    info.comp_info[0].h_samp_factor = recipe.sampling_x;
    info.comp_info[0].v_samp_factor = recipe.sampling_y;
  }
  jpeg_start_compress(&info, TRUE);
  if (recipe.orientation != 0) {
    const std::string exif = exif_payload(recipe.orientation, recipe.exif_big_endian);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  std::vector<uint8_t> input = jpeg_input(rgb, recipe.colors);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = input.data() + size_t{info.next_scanline} * info.image_width *
                                      static_cast<size_t>(info.input_components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  Bytes result(first, first + size);
  std::free(bytes);
  return result;
}

Bytes make_pnm(const Image& rgb, char kind, unsigned max_value) {
  const bool text = kind == '2' || kind == '3';
  const bool grey = kind == '2' || kind == '5';
  std::string out = std::string("P") + kind + "\n# made by a test\n" + std::to_string(rgb.width()) +
                    " " + std::to_string(rgb.height()) + "\n" + std::to_string(max_value) + "\n";
  const Image source = grey ? to_grey(rgb) : test_picture(1, 1);
  for (const uint8_t level : grey ? source.pixels() : rgb.pixels()) {
    const unsigned value = level * max_value / 255;
    if (text) {
      out += std::to_string(value) + " ";
    } else {
      if (max_value > 255) out += static_cast<char>(value >> 8);
      out += static_cast<char>(value);
    }
  }
  return to_bytes(out);
}

Bytes to_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

Image to_grey(const Image& rgb) {
  Image grey(rgb.height(), rgb.width(), 1);
  for (size_t i = 0; i < grey.size(); ++i) {
    const uint8_t* p = rgb.pixels().data() + 3 * i;
    grey.pixels()[i] = codec::luma(p[0], p[1], p[2]);
  }
  return grey;
}

double mean_difference(const Image& a, const Image& b) {
  if (a.height() != b.height() || a.width() != b.width() || a.channels() != b.channels())
    return 1e9;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a.pixels()[i]} - int{b.pixels()[i]});
  return sum / static_cast<double>(a.size());
}

Image oriented(const Image& stored, int orientation) {
  const int w = stored.width();
  const int h = stored.height();
  Image result(orientation >= 5 ? w : h, orientation >= 5 ? h : w, 3);
  for (int y = 0; y < result.height(); ++y) {
    for (int x = 0; x < result.width(); ++x) {
      const struct {
        int x, y;
      } from[] = {
          {},     {x, y},         {w - 1 - x, y},         {w - 1 - x, h - 1 - y}, {x, h - 1 - y},
          {y, x}, {y, h - 1 - x}, {w - 1 - y, h - 1 - x}, {w - 1 - y, x}};
      const auto& place = from[orientation];
      for (int c = 0; c < 3; ++c) result.row(y)[3 * x + c] = stored.row(place.y)[3 * place.x + c];
    }
  }
  return result;
}

Image decode(const Bytes& bytes, int channels) {
  Decoder decoder;
  Image image;
  decoder.decode(bytes, channels, image);
  return image;
}

}  // namespace outrigger::data::testing
