#include "nn/cuda/pinned_ranges.h"

#include <iterator>

namespace outrigger::nn::cuda {

void PinnedRanges::given(const void* memory, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  ranges_[static_cast<const std::byte*>(memory)] = bytes;
}

void PinnedRanges::released(const void* memory) {
  const std::scoped_lock lock(mutex_);
  ranges_.erase(static_cast<const std::byte*>(memory));
}

bool PinnedRanges::hold(const void* data, size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(data);
  const std::scoped_lock lock(mutex_);
  const auto behind = ranges_.upper_bound(first);
  if (behind == ranges_.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  const auto offset = static_cast<size_t>(first - begin);
  return offset <= size && bytes <= size - offset;
}

}  // namespace outrigger::nn::cuda
