#pragma once

#include <memory>

#include "data/codec/reader.h"

namespace outrigger::data::codec {

/// PNG through libpng; see Reader. Every row is decoded, so damage is found wherever it is; never
/// shrinks.
class PngReader {
 public:
  explicit PngReader(DecodeLimits limits);
  ~PngReader();

  Header open(std::span<const std::byte> encoded);
  Decoded read(const Request& request, Image& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrigger::data::codec
