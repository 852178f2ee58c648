#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "common/memory_source.h"

namespace outrigger::fakes {

/// A source of so many blocks at once, and none larger than `most_bytes`. Overwrites what comes
/// back. Thread-safe.
class MemoryBlocks final : public MemorySource, public std::enable_shared_from_this<MemoryBlocks> {
 public:
  static std::shared_ptr<MemoryBlocks> create(size_t blocks, size_t most_bytes = size_t{1} << 30) {
    return std::shared_ptr<MemoryBlocks>(new MemoryBlocks(blocks, most_bytes));
  }

  std::shared_ptr<std::byte> acquire(size_t bytes) override {
    const std::scoped_lock lock(mutex_);
    if (bytes > most_bytes_ || used_.size() == blocks_) return nullptr;
    auto* data = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), kAlignment));
    used_.push_back({data, bytes});
    return {data, [self = shared_from_this()](std::byte* block) { self->release(block); }};
  }

  size_t used() const {
    const std::scoped_lock lock(mutex_);
    return used_.size();
  }
  /// Whether the address lies in a block that is in use.
  bool hold(const std::byte* data) const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(used_, [&](const Block& block) {
      return block.data <= data && data < block.data + block.bytes;
    });
  }

 private:
  struct Block {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  static constexpr std::align_val_t kAlignment{64};

  MemoryBlocks(size_t blocks, size_t most_bytes) : blocks_(blocks), most_bytes_(most_bytes) {}
  void release(std::byte* data) {
    const std::scoped_lock lock(mutex_);
    const auto block = std::ranges::find(used_, data, &Block::data);
    std::fill_n(data, block->bytes, std::byte{0xDD});
    ::operator delete(data, kAlignment);
    used_.erase(block);
  }

  const size_t blocks_, most_bytes_;
  mutable std::mutex mutex_;
  std::vector<Block> used_;
};

}  // namespace outrigger::fakes
