#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "data/sample.h"

namespace outrigger::data {

struct ReaderOptions {
  /// A larger image is refused with InvalidInput before memory is taken for it.
  uint64_t max_image_bytes = uint64_t{256} << 20;
  /// Shards that stay open, least recently used closed first.
  uint32_t open_shards = 16;
};

/// Reads the bytes of samples. One per thread; keeps its buffer and the shards' descriptors from
/// call to call.
class SampleReader {
 public:
  explicit SampleReader(std::filesystem::path root, ReaderOptions options = {});
  ~SampleReader();
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;

  /// The sample's bytes, valid until the next call. Throws IoError with the path when it cannot be
  /// read or is shorter than the sample says (somebody else's fault: the data, not the sample, is
  /// missing), InvalidInput when too large or when the path leads out of the root by "..".
  std::span<const std::byte> read(const Sample& sample);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrigger::data
