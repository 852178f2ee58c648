#pragma once

#include <cstddef>

namespace outrigger {

/// Memory that is not initialised, aligned to 64 bytes, whose pages can be used again: the first
/// use of a page takes longer than most of what is done with it. Movable, not copyable. Throws
/// std::bad_alloc.
class LargeMemory {
 public:
  LargeMemory() = default;
  explicit LargeMemory(size_t bytes);
  LargeMemory(LargeMemory&& other) noexcept;
  LargeMemory& operator=(LargeMemory&& other) noexcept;
  ~LargeMemory();

  /// What is in it is lost, and where it is changes; of large memory pages that were used are kept,
  /// as many as are still needed.
  void resize(size_t bytes);
  /// The same where there are fewer.
  void reserve(size_t bytes) {
    if (bytes > bytes_) resize(bytes);
  }

  /// Uses every page, where none was used before; what is in them is lost.
  void use();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace outrigger
