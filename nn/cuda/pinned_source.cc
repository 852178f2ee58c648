#include "nn/cuda/pinned_source.h"

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::nn::cuda {
namespace {

constexpr size_t kPage = 4096;  // what is pinned is whole pages

}  // namespace

std::shared_ptr<PinnedSource> PinnedSource::create(std::shared_ptr<Engine> engine,
                                                   size_t most_bytes) {
  return std::shared_ptr<PinnedSource>(new PinnedSource(std::move(engine), most_bytes));
}

std::shared_ptr<std::byte> PinnedSource::acquire(size_t bytes) {
  PinnedMemory block = find(bytes);
  if (block.data() == nullptr) block = make(bytes);
  if (block.data() == nullptr) return nullptr;
  std::byte* data = block.data();
  {
    const std::scoped_lock lock(mutex_);
    used_.emplace(data, std::move(block));
  }
  return {data, [self = shared_from_this()](const std::byte* memory) { self->give_back(memory); }};
}

size_t PinnedSource::taken_bytes() const {
  const std::scoped_lock lock(mutex_);
  return taken_bytes_;
}

PinnedMemory PinnedSource::find(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto smallest = free_.lower_bound(bytes);
  if (smallest == free_.end()) return {};
  const bool full = taken_bytes_ + bytes > most_bytes_;
  if (smallest->first / 2 > std::max(bytes, kPage) && !full) return {};
  PinnedMemory block = std::move(smallest->second);
  free_.erase(smallest);
  return block;
}

bool PinnedSource::reserve(size_t bytes) {
  std::multimap<size_t, PinnedMemory> dropped;
  {
    const std::scoped_lock lock(mutex_);
    if (taken_bytes_ + bytes > most_bytes_) {
      size_t unused = 0;
      for (const auto& block : free_) unused += block.first;
      if (taken_bytes_ - unused + bytes > most_bytes_) {
        if (!warned_) {
          log::warning(
              "{} MiB of pinned memory are in use, and no more are to be had: what workers send "
              "beyond that is copied once more on its way to the GPU",
              taken_bytes_ >> 20);
        }
        warned_ = true;
        return false;
      }
      taken_bytes_ -= unused;
      dropped.swap(free_);
    }
    taken_bytes_ += bytes;
  }
  if (dropped.empty()) return true;
  // A device that records a pass may not be waited for.
  const auto lock = engine_->enter();
  dropped.clear();
  return true;
}

PinnedMemory PinnedSource::make(size_t bytes) {
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  try {
    if (!reserve(rounded)) return {};
    return {engine_, rounded, "input on its way"};
  } catch (const Error& error) {
    const std::scoped_lock lock(mutex_);
    taken_bytes_ -= rounded;
    most_bytes_ = taken_bytes_;  // asking again for each frame would take long, in vain
    if (!warned_) {
      log::warning("{}: what workers send beyond {} MiB is copied once more on its way to the GPU",
                   error.what(), taken_bytes_ >> 20);
    }
    warned_ = true;
    return {};
  }
}

void PinnedSource::give_back(const std::byte* data) {
  const std::scoped_lock lock(mutex_);
  const auto block = used_.find(data);
  free_.emplace(block->second.bytes(), std::move(block->second));
  used_.erase(block);
}

}  // namespace outrigger::nn::cuda
