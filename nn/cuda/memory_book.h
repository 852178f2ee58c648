#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "nn/cuda/backend.h"

namespace outrigger::nn::cuda {

/// What of a device's memory is taken, and for what. Thread-safe.
class MemoryBook {
 public:
  void taken(const void* memory, size_t bytes, const std::string& what);
  void released(const void* memory);
  /// Summed up by what it is for, the most first.
  std::vector<MemoryUse> uses() const;

 private:
  struct Piece {
    size_t bytes = 0;
    std::string what;
  };
  mutable std::mutex mutex_;
  std::map<const void*, Piece> pieces_;
};

int64_t sum(const std::vector<MemoryUse>& uses);

/// "1.5 GiB: 1.0 GiB the weights, 0.5 GiB …"; of more than `most` the first, and what is left in
/// one. Pure.
std::string describe(const std::vector<MemoryUse>& uses, size_t most = SIZE_MAX);

}  // namespace outrigger::nn::cuda
