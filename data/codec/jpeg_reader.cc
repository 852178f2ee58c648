#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>
// The numbers of its messages depend on what jpeglib.h says was built in.
#include <jerror.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>

#include "data/codec/exif.h"
#include "data/codec/format_reader.h"
#include "data/codec/guard.h"
#include "data/codec/rows.h"

namespace outrigger::data::codec {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kWholeMarker = 0xFFFF;
/// Smooth chroma looks one chroma sample, which is at most two pixels, to either side: with that
/// margin a part is decoded to the same pixels as in the whole image.
constexpr int kChromaMargin = 2;

/// Warnings after which pixels are missing or made up. Others (odd version numbers, padding between
/// segments) are passed over, as every viewer does.
bool loses_pixels(int code) {
  return code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF ||
         code == JWRN_MUST_RESYNC || code == JWRN_ARITH_BAD_CODE || code == JWRN_BOGUS_PROGRESSION;
}

bool has_end_marker(const JOCTET* first, const JOCTET* last) {
  for (const JOCTET* p = last; p - first >= 2; --p) {
    if (p[-1] == JPEG_EOI && p[-2] == 0xFF) return true;
  }
  return false;
}

struct JpegState {
  explicit JpegState(DecodeLimits decode_limits);
  /// A decoder that knows nothing of the images before: libjpeg keeps their tables, and a file
  /// without its own would be decoded with those.
  void renew();
  ~JpegState() { jpeg_destroy_decompress(&info); }
  JpegState(const JpegState&) = delete;
  JpegState& operator=(const JpegState&) = delete;

  template <typename Step>
  void run(Step step) {
    lost_pixels = false;
    if (!guarded(jump, step) || lost_pixels) fail(message);
  }
  [[noreturn]] void fail(const std::string& what) {
    jpeg_abort_decompress(&info);
    throw BrokenImage("broken JPEG: " + what);
  }
  void choose_colors(int channels);
  Decoded start(const Request& request, int& height);

  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
  std::jmp_buf jump{};
  DecodeLimits limits;
  std::span<const std::byte> encoded;
  bool lost_pixels = false;
  char message[JMSG_LENGTH_MAX]{};
};

JpegState::JpegState(DecodeLimits decode_limits) : limits(decode_limits) {
  info.err = jpeg_std_error(&errors);
  info.client_data = this;
  errors.error_exit = [](j_common_ptr common) {
    auto* self = static_cast<JpegState*>(common->client_data);
    common->err->format_message(common, self->message);
    std::longjmp(self->jump, 1);
  };
  errors.emit_message = [](j_common_ptr common, int level) {
    auto* self = static_cast<JpegState*>(common->client_data);
    if (level >= 0 || !loses_pixels(common->err->msg_code) || self->lost_pixels) return;
    self->lost_pixels = true;
    common->err->format_message(common, self->message);
  };
  // Each scan of a progressive image costs a pass over all of it, however few bytes the scan has.
  progress.progress_monitor = [](j_common_ptr common) {
    auto* self = static_cast<JpegState*>(common->client_data);
    if (self->info.input_scan_number <= self->limits.max_scans) return;
    std::snprintf(self->message, sizeof self->message, "more than %d scans",
                  self->limits.max_scans);
    std::longjmp(self->jump, 1);
  };
  renew();
}

void JpegState::renew() {
  jpeg_destroy_decompress(&info);
  auto create = [this] { jpeg_create_decompress(&info); };
  if (!guarded(jump, create)) throw Error(std::string("libjpeg cannot start: ") + message);
  info.progress = &progress;
  jpeg_save_markers(&info, kExifMarker, kWholeMarker);
}

class JpegReader final : public FormatReader {
 public:
  explicit JpegReader(const DecodeLimits& limits) : state_(limits) {}

  Header open(std::span<const std::byte> encoded) override;
  Decoded read(const Request& request, Image& image) override;

 private:
  JpegState state_;
};

Header JpegReader::open(std::span<const std::byte> encoded) {
  JpegState& s = state_;
  s.renew();
  s.encoded = encoded;
  const auto* bytes = reinterpret_cast<const JOCTET*>(encoded.data());
  s.run([&s, bytes] {
    jpeg_mem_src(&s.info, bytes, static_cast<unsigned long>(s.encoded.size()));
    jpeg_read_header(&s.info, TRUE);
  });
  check_size(s.info.image_width, s.info.image_height, s.limits, "JPEG");
  if (s.info.num_components == 2 || s.info.num_components > 4) {
    s.fail(std::to_string(s.info.num_components) + " colour components");
  }
  if (!has_end_marker(s.info.src->next_input_byte, bytes + encoded.size())) s.fail("cut short");
  Header header{static_cast<int>(s.info.image_width), static_cast<int>(s.info.image_height), 1};
  for (const auto* marker = s.info.marker_list; marker != nullptr; marker = marker->next) {
    header.orientation =
        exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
    if (header.orientation != 1) break;
  }
  return header;
}

void JpegState::choose_colors(int channels) {
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) {
    info.out_color_space = JCS_CMYK;
  } else {
    info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
  }
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  info.do_block_smoothing = FALSE;
}

/// Starts to decode the request's region, up to its first row; `height` becomes its number of rows.
Decoded JpegState::start(const Request& request, int& height) {
  Decoded decoded;
  run([this, &request, &decoded, &height] {
    choose_colors(request.channels);
    info.scale_num = 1;
    info.scale_denom = 1U << request.max_shrink_log2;
    jpeg_start_decompress(&info);
    const int k = request.max_shrink_log2;
    const auto up = [k](int x) { return (x + (1 << k) - 1) >> k; };
    const Rect& r = request.region;
    const int whole_width = static_cast<int>(info.output_width);
    const int left = std::max(0, (r.x >> k) - kChromaMargin);
    const int right = std::min(whole_width, up(r.x + r.width) + kChromaMargin);
    JDIMENSION x = static_cast<JDIMENSION>(left);
    if (right - left < whole_width) {
      JDIMENSION width = static_cast<JDIMENSION>(right - left);
      jpeg_crop_scanline(&info, &x, &width);
    }
    const int y = r.y >> k;
    height = std::min(static_cast<int>(info.output_height), up(r.y + r.height)) - y;
    if (y > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(y));
    decoded = {static_cast<int>(x), y, k};
  });
  return decoded;
}

Decoded JpegReader::read(const Request& request, Image& image) {
  JpegState& s = state_;
  int height = 0;
  const Decoded decoded = s.start(request, height);
  const bool inked = s.info.out_color_space == JCS_CMYK;
  const int width = static_cast<int>(s.info.output_width);
  image.reshape(height, width, inked ? 4 : request.channels);
  s.run([&s, &image, height] {
    for (int y = 0; y < height;) {
      JSAMPROW row = image.row(y);
      y += static_cast<int>(jpeg_read_scanlines(&s.info, &row, 1));
    }
  });
  // The rest of the file is not looked at: ending here saves its entropy decoding.
  jpeg_abort_decompress(&s.info);
  if (inked) {
    cmyk_to_rgbx(image.pixels().data(), image.size() / 4, s.info.saw_Adobe_marker != 0);
    if (request.channels == 1) {
      // In place: every grey value is written no later than where its pixel was read.
      rgbx_to_grey(image.pixels().data(), image.size() / 4, image.pixels().data());
      image.reshape(height, width, 1);
    }
  }
  return decoded;
}

}  // namespace

std::unique_ptr<FormatReader> make_jpeg_reader(const DecodeLimits& limits) {
  return std::make_unique<JpegReader>(limits);
}

}  // namespace outrigger::data::codec
