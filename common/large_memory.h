#pragma once

#include <cstddef>

namespace outrigger {

/// Memory that is not initialised, aligned to 64 bytes. A large piece is in pages of 2 MiB where
/// the system gives them (transparent huge pages, `madvise` or `always`): using it for the first
/// time takes a quarter of the time, and of the processor's table of pages a small part. Movable,
/// not copyable. Throws std::bad_alloc.
class LargeMemory {
 public:
  LargeMemory() = default;
  explicit LargeMemory(size_t bytes);
  LargeMemory(LargeMemory&& other) noexcept;
  LargeMemory& operator=(LargeMemory&& other) noexcept;
  ~LargeMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace outrigger
