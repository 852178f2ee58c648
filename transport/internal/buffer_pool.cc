#include "transport/internal/buffer_pool.h"

#include <algorithm>
#include <new>

namespace outrigger::transport {
namespace {

constexpr std::align_val_t kBlockAlignment{64};

}  // namespace

std::shared_ptr<BufferPool> BufferPool::create(size_t keep_bytes,
                                               std::shared_ptr<MemorySource> source) {
  return std::shared_ptr<BufferPool>(new BufferPool(keep_bytes, std::move(source)));
}

BufferPool::~BufferPool() {
  for (const Block& block : free_) ::operator delete(block.data, kBlockAlignment);
}

std::shared_ptr<std::byte> BufferPool::acquire(size_t size) {
  if (source_ != nullptr) {
    if (auto memory = source_->acquire(size)) return memory;
  }
  Block block = find(size);
  if (block.data == nullptr) {
    block.capacity = std::max<size_t>(size, 1);
    block.data = static_cast<std::byte*>(::operator new(block.capacity, kBlockAlignment));
  }
  return {block.data, [pool = shared_from_this(), block](std::byte*) { pool->release(block); }};
}

BufferPool::Block BufferPool::find(size_t size) {
  const std::scoped_lock lock(mutex_);
  // The newest first: its pages are most likely still in the cache. Up to twice the size, so that
  // little is wasted.
  for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
    if (it->capacity < size || it->capacity / 2 > size) continue;
    const Block block = *it;
    free_.erase(std::next(it).base());
    kept_ -= block.capacity;
    return block;
  }
  return {};
}

void BufferPool::release(Block block) {
  block.freed = system_now();
  std::unique_lock lock(mutex_);
  free_.push_back(block);
  kept_ += block.capacity;
  drop_oldest(std::move(lock), TimePoint::min());
}

void BufferPool::drop_unused_since(TimePoint time) { drop_oldest(std::unique_lock(mutex_), time); }

void BufferPool::drop_oldest(std::unique_lock<std::mutex> lock, TimePoint time) {
  auto end = free_.begin();
  for (; end != free_.end() && (kept_ > keep_bytes_ || end->freed < time); ++end)
    kept_ -= end->capacity;
  const std::vector<Block> dropped(free_.begin(), end);
  free_.erase(free_.begin(), end);
  lock.unlock();  // giving much memory back takes a while
  for (const Block& old : dropped) ::operator delete(old.data, kBlockAlignment);
}

size_t BufferPool::kept_bytes() const {
  const std::scoped_lock lock(mutex_);
  return kept_;
}

}  // namespace outrigger::transport
