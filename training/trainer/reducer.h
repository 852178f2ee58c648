#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace outrigger::training {

/// Sums over the replicas; every rank calls it for the same sizes in the same order and gets the
/// same bits. One thread at a time.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t replicas() const = 0;
  virtual void all_reduce(std::span<float> values) = 0;
  /// Likewise, of values that travel as bfloat16: rounded, added in float32 in the order of the
  /// ranks, and the sum rounded again.
  virtual void all_reduce_bfloat16(std::span<float> values) = 0;
  /// Replaces the bytes by rank 0's.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
};

}  // namespace outrigger::training
