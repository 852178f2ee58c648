#include "data/codec/jpeg_writer.h"

#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>
#include <string>

#include "common/error.h"
#include "data/codec/guard.h"

namespace outrigger::data::codec {
namespace {

struct Writer {
  Writer() {
    info.err = jpeg_std_error(&errors);
    info.client_data = this;
    errors.error_exit = [](j_common_ptr common) {
      auto* self = static_cast<Writer*>(common->client_data);
      common->err->format_message(common, self->message);
      std::longjmp(self->jump, 1);
    };
  }
  ~Writer() {
    jpeg_destroy_compress(&info);
    std::free(bytes);  // libjpeg's malloc
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(const Image& image, int quality);

  jpeg_error_mgr errors{};
  jpeg_compress_struct info{};
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX]{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
};

void Writer::write(const Image& image, int quality) {
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(image.width());
  info.image_height = static_cast<JDIMENSION>(image.height());
  info.input_components = image.channels();
  info.in_color_space = image.channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < image.height(); ++y) {
    auto* row = const_cast<JSAMPLE*>(image.row(y));  // libjpeg only reads it
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
}

}  // namespace

Bytes write_jpeg(const Image& image, int quality) {
  Writer writer;
  auto step = [&writer, &image, quality] { writer.write(image, quality); };
  if (!guarded(writer.jump, step))
    throw Error(std::string("cannot write a JPEG: ") + writer.message);
  const auto* first = reinterpret_cast<const std::byte*>(writer.bytes);
  return {first, first + writer.size};
}

}  // namespace outrigger::data::codec
