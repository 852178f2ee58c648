#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

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

 private:
  struct Block {
    std::byte* data = nullptr;
    size_t capacity = 0;
  };

  BufferPool(size_t keep_bytes, std::shared_ptr<MemorySource> source)
      : keep_bytes_(keep_bytes), source_(std::move(source)) {}
  Block find(size_t size);
  void release(Block block);

  const size_t keep_bytes_;
  const std::shared_ptr<MemorySource> source_;
  std::mutex mutex_;
  std::vector<Block> free_;  ///< oldest first
  size_t kept_ = 0;
};

}  // namespace outrigger::transport
