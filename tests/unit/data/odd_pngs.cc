#include <png.h>

#include "odd_images.h"

namespace outrigger::data::testing {
namespace {

struct PngWriter {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Bytes bytes;

  PngWriter() {
    const auto write = [](png_structp p, png_bytep data, size_t size) {
      auto* to = static_cast<Bytes*>(png_get_io_ptr(p));
      const auto* first = reinterpret_cast<const std::byte*>(data);
      to->insert(to->end(), first, first + size);
    };
    png_set_write_fn(png, &bytes, write, [](png_structp) {});
  }
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

int png_color_type(PngColors colors) {
  switch (colors) {
    case PngColors::kGrey:
      return PNG_COLOR_TYPE_GRAY;
    case PngColors::kGreyAlpha:
      return PNG_COLOR_TYPE_GRAY_ALPHA;
    case PngColors::kRgb:
      return PNG_COLOR_TYPE_RGB;
    case PngColors::kRgba:
      return PNG_COLOR_TYPE_RGB_ALPHA;
    case PngColors::kPalette:
      return PNG_COLOR_TYPE_PALETTE;
  }
  return PNG_COLOR_TYPE_RGB;
}

/// 3 bits of red and green, 2 of blue; palette entry i has the colour that i says.
uint8_t palette_index(const uint8_t* rgb, int bits) {
  const unsigned index = (rgb[0] & 0xE0U) | (rgb[1] & 0xE0U) >> 3 | rgb[2] >> 6;
  return static_cast<uint8_t>(index >> (8 - bits));
}

/// One pixel's samples of 8 or 16 bits; a 16-bit sample is the byte twice.
void put_pixel(std::vector<uint8_t>& row, const uint8_t* rgb, uint8_t grey,
               const PngRecipe& recipe) {
  const auto put = [&](uint8_t value) {
    row.push_back(value);
    if (recipe.bits == 16) row.push_back(value);
  };
  const bool is_grey = recipe.colors == PngColors::kGrey || recipe.colors == PngColors::kGreyAlpha;
  if (is_grey) {
    put(grey);
  } else {
    for (int c = 0; c < 3; ++c) put(rgb[c]);
  }
  if (recipe.colors == PngColors::kGreyAlpha || recipe.colors == PngColors::kRgba) put(30);
}

/// Samples of fewer than 8 bits, packed from the highest bit on.
void pack_bits(std::vector<uint8_t>& row, const std::vector<uint8_t>& samples, int bits) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i % per_byte == 0) row.push_back(0);
    row.back() = static_cast<uint8_t>(
        row.back() | samples[i] << (8 - bits * static_cast<int>(i % per_byte + 1)));
  }
}

std::vector<uint8_t> png_row(const Image& rgb, const Image& grey, int y, const PngRecipe& recipe) {
  std::vector<uint8_t> row;
  std::vector<uint8_t> samples;
  const bool packed = recipe.bits < 8 || recipe.colors == PngColors::kPalette;
  for (int x = 0; x < rgb.width(); ++x) {
    const uint8_t* p = rgb.row(y) + 3 * x;
    if (!packed) {
      put_pixel(row, p, grey.row(y)[x], recipe);
    } else if (recipe.colors == PngColors::kPalette) {
      samples.push_back(palette_index(p, recipe.bits));
    } else {
      samples.push_back(static_cast<uint8_t>(grey.row(y)[x] >> (8 - recipe.bits)));
    }
  }
  if (packed) pack_bits(row, samples, recipe.bits);
  return row;
}

void set_palette(PngWriter& writer, int bits, bool transparent) {
  std::vector<png_color> palette;
  for (unsigned i = 0; i < 1U << bits; ++i) {
    const unsigned index = i << (8 - bits);
    palette.push_back({static_cast<png_byte>(index & 0xE0),
                       static_cast<png_byte>(index << 3 & 0xE0),
                       static_cast<png_byte>(index << 6 & 0xC0)});
  }
  png_set_PLTE(writer.png, writer.info, palette.data(), static_cast<int>(palette.size()));
  const png_byte alpha[2] = {0, 128};
  if (transparent) png_set_tRNS(writer.png, writer.info, alpha, 2, nullptr);
}

}  // namespace

Bytes make_png(const Image& rgb, const PngRecipe& recipe) {
  const Image grey = to_grey(rgb);
  PngWriter writer;
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(rgb.width()),
               static_cast<png_uint_32>(rgb.height()), recipe.bits, png_color_type(recipe.colors),
               recipe.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (recipe.colors == PngColors::kPalette)
    set_palette(writer, recipe.bits, recipe.transparent_color);
  png_color_16 key{};
  key.red = key.green = key.blue = key.gray = 250;
  if (recipe.transparent_color && recipe.colors != PngColors::kPalette) {
    png_set_tRNS(writer.png, writer.info, nullptr, 0, &key);
  }
  png_write_info(writer.png, writer.info);
  const int passes = png_set_interlace_handling(writer.png);
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < rgb.height(); ++y)
      png_write_row(writer.png, png_row(rgb, grey, y, recipe).data());
  }
  png_write_end(writer.png, writer.info);
  return std::move(writer.bytes);
}

}  // namespace outrigger::data::testing
