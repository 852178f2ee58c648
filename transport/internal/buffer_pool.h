#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/memory_source.h"

namespace outrigger::transport {

/// Memory for received frames, aligned to 64 bytes and not initialised, that is used again: fresh
/// memory of such sizes comes from the kernel page by page and would cost as much as the transfer.
/// Thread-safe. Buffers keep the pool alive. A source keeps memory of its own kind itself.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Keeps at most `keep_bytes` of free memory. Gives out the source's as far as that has any;
  /// null: only its own.
  static std::shared_ptr<BufferPool> create(size_t keep_bytes,
                                            std::shared_ptr<MemorySource> source = nullptr);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// At least `size` bytes.
  std::shared_ptr<std::byte> acquire(size_t size);

  /// Gives back free memory that nobody has used since `time`.
  void drop_unused_since(TimePoint time);
  /// Free memory.
  size_t kept_bytes() const;

 private:
  struct Block {
    std::byte* data = nullptr;
    size_t capacity = 0;
    TimePoint freed{};
  };

  BufferPool(size_t keep_bytes, std::shared_ptr<MemorySource> source)
      : keep_bytes_(keep_bytes), source_(std::move(source)) {}
  Block find(size_t size);
  void release(Block block);
  /// Gives back the oldest while more is free than is kept, or it was last used before `time`.
  void drop_oldest(std::unique_lock<std::mutex> lock, TimePoint time);

  const size_t keep_bytes_;
  const std::shared_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  std::vector<Block> free_;  ///< oldest first
  size_t kept_ = 0;
};

}  // namespace outrigger::transport
