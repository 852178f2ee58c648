#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace outrigger::nn::cuda {

/// Which addresses lie in pinned memory that an engine has given out. Thread-safe.
class PinnedRanges {
 public:
  void given(const void* memory, size_t bytes);
  void released(const void* memory);
  /// All of [data, data + bytes) lies in one of them.
  bool hold(const void* data, size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, size_t> ranges_;  // bytes by first address
};

}  // namespace outrigger::nn::cuda
