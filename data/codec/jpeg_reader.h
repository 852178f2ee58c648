#pragma once

#include <memory>

#include "data/codec/reader.h"

namespace outrigger::data::codec {

/// JPEG through libjpeg-turbo; see Reader. Decodes only the columns and rows asked for, and shrinks
/// in the DCT domain.
class JpegReader {
 public:
  explicit JpegReader(DecodeLimits limits);
  ~JpegReader();

  Header open(std::span<const std::byte> encoded);
  Decoded read(const Request& request, Image& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrigger::data::codec
