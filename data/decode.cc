#include "data/decode.h"

#include "data/pixels/canvas.h"

namespace outrigger::data {

Decoder::Decoder(DecodeLimits limits) : canvas_(std::make_unique<pixels::Canvas>(limits)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

ImageInfo Decoder::inspect(std::span<const std::byte> encoded) {
  canvas_->load(encoded, 1);
  return {canvas_->view().height(), canvas_->view().width()};
}

void Decoder::decode(std::span<const std::byte> encoded, int channels, Image& image) {
  ensure(channels == 1 || channels == 3, "channels are 1 or 3");
  canvas_->load(encoded, channels == 1 ? 1 : 4);
  const Image& pixels = canvas_->pixels();
  image.reshape(pixels.height(), pixels.width(), channels);
  pixels::pack(pixels, image.pixels().data());
}

}  // namespace outrigger::data
