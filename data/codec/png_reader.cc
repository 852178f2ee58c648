#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "data/codec/format_reader.h"
#include "data/codec/guard.h"
#include "data/codec/rows.h"

namespace outrigger::data::codec {
namespace {

/// What one text or colour-profile chunk may unpack to.
constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{8} << 20;

struct PngDeleter {
  png_infop info = nullptr;
  void operator()(png_structp png) { png_destroy_read_struct(&png, &info, nullptr); }
};
using PngPointer = std::unique_ptr<png_struct, PngDeleter>;

struct PngState {
  explicit PngState(DecodeLimits decode_limits) : limits(decode_limits) {}

  template <typename Step>
  void run(Step step) {
    if (guarded(jump, step)) return;
    png.reset();
    throw NoImage(std::string("broken PNG: ") + message);
  }
  void create();
  void ask_for_8_bits();
  void read_rows(const Request& request, Image& image);
  void put_row(const Request& request, const uint8_t* stored, int y, Image& image) const;

  DecodeLimits limits;
  std::span<const std::byte> rest;
  PngPointer png;
  png_infop info = nullptr;
  bool grey = false;
  std::jmp_buf jump{};
  char message[128]{};
  std::vector<uint8_t> rows;
};

void PngState::create() {
  const auto fail = [](png_structp p, png_const_charp text) {
    auto* self = static_cast<PngState*>(png_get_error_ptr(p));
    std::snprintf(self->message, sizeof self->message, "%s", text);
    std::longjmp(self->jump, 1);
  };
  const auto read = [](png_structp p, png_bytep to, size_t size) {
    auto* self = static_cast<PngState*>(png_get_io_ptr(p));
    if (size > self->rest.size()) png_error(p, "cut short");
    std::memcpy(to, self->rest.data(), size);
    self->rest = self->rest.subspan(size);
  };
  png.reset(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail,
                                   [](png_structp, png_const_charp) {}));
  info = png ? png_create_info_struct(png.get()) : nullptr;
  if (info == nullptr) throw Error("libpng cannot start");
  png.get_deleter().info = info;
  png_set_read_fn(png.get(), this, read);
  png_set_chunk_malloc_max(png.get(), kMaxChunkBytes);
  png_set_user_limits(png.get(), INT32_MAX, INT32_MAX);
}

class PngReader final : public FormatReader {
 public:
  explicit PngReader(const DecodeLimits& limits) : state_(limits) {}

  Header open(std::span<const std::byte> encoded) override;
  Decoded read(const Request& request, Image& image) override;

 private:
  PngState state_;
};

Header PngReader::open(std::span<const std::byte> encoded) {
  PngState& s = state_;
  s.rest = encoded;
  s.create();
  s.run([&s] { png_read_info(s.png.get(), s.info); });
  const auto width = png_get_image_width(s.png.get(), s.info);
  const auto height = png_get_image_height(s.png.get(), s.info);
  check_size(width, height, s.limits, "PNG");
  return {static_cast<int>(width), static_cast<int>(height), 1};
}

/// Asks libpng for rows of grey bytes or of R, G, B and a filler.
void PngState::ask_for_8_bits() {
  png_structp p = png.get();
  const int color = png_get_color_type(p, info);
  grey = (color & PNG_COLOR_MASK_COLOR) == 0;
  png_set_scale_16(p);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(p);
  if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(p);
  png_set_strip_alpha(p);
  if (!grey) png_set_filler(p, 0xFF, PNG_FILLER_AFTER);
}

void PngState::put_row(const Request& request, const uint8_t* stored, int y, Image& image) const {
  const Rect& r = request.region;
  if (y < r.y || y >= r.y + r.height) return;
  const auto width = static_cast<size_t>(r.width);
  const auto x = static_cast<size_t>(r.x);
  uint8_t* to = image.row(y - r.y);
  if (grey && request.channels == 1) {
    std::memcpy(to, stored + x, width);
  } else if (grey) {
    grey_to_rgbx(stored + x, width, to);
  } else if (request.channels == 1) {
    rgbx_to_grey(stored + 4 * x, width, to);
  } else {
    std::memcpy(to, stored + 4 * x, 4 * width);
  }
}

void PngState::read_rows(const Request& request, Image& image) {
  const size_t row_bytes = png_get_rowbytes(png.get(), info);
  const int height = static_cast<int>(png_get_image_height(png.get(), info));
  const bool interlaced = png_get_interlace_type(png.get(), info) != PNG_INTERLACE_NONE;
  // An interlaced image comes in seven passes over all of its rows.
  rows.resize(interlaced ? row_bytes * static_cast<size_t>(height) : row_bytes);
  const int passes = interlaced ? 7 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    uint8_t* row = rows.data();
    run([this, &request, &image, row, row_bytes, height, interlaced] {
      uint8_t* to = row;
      for (int y = 0; y < height; ++y) {
        png_read_row(png.get(), to, nullptr);
        if (interlaced) {
          to += row_bytes;
        } else {
          put_row(request, to, y, image);
        }
      }
    });
  }
  if (!interlaced) return;
  for (int y = 0; y < height; ++y)
    put_row(request, rows.data() + row_bytes * static_cast<size_t>(y), y, image);
}

Decoded PngReader::read(const Request& request, Image& image) {
  PngState& s = state_;
  image.reshape(request.region.height, request.region.width, request.channels);
  s.run([&s] {
    s.ask_for_8_bits();
    png_set_interlace_handling(s.png.get());
    png_read_update_info(s.png.get(), s.info);
  });
  s.read_rows(request, image);
  s.run([&s] { png_read_end(s.png.get(), nullptr); });
  s.png.reset();
  return {request.region.x, request.region.y, 0};
}

}  // namespace

std::unique_ptr<FormatReader> make_png_reader(const DecodeLimits& limits) {
  return std::make_unique<PngReader>(limits);
}

}  // namespace outrigger::data::codec
