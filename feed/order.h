#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace outrigger::feed {

enum class Sampling : uint8_t { kUniform, kClassBalanced };

struct OrderOptions {
  uint64_t seed = 0;
  uint32_t samples = 0;  // N, how many the data set has; > 0
  Sampling sampling = Sampling::kUniform;
  std::vector<int32_t> labels;  // one per sample; only ClassBalanced reads them
  /// Windowed order: blocks (shards) in a drawn order, then a shuffle buffer of so many samples.
  /// Absent: one full permutation per epoch.
  std::optional<uint32_t> window;
  std::vector<uint32_t>
      block_starts;  // first sample of each block, ascending, from 0; empty: one block
};

/// The endless order of samples: a pure function from slot to sample, given (seed, data). Slot s is
/// position s mod N of epoch s / N. Each slot has a series of samples, and is filled by the first
/// of them that is an image there. Not thread-safe.
class SampleOrder {
 public:
  explicit SampleOrder(OrderOptions options);

  uint32_t samples() const { return options_.samples; }
  uint64_t epoch_of(uint64_t slot) const { return slot / options_.samples; }

  /// The sample behind the first `broken` of the slot's series; the first is the one that the order
  /// names, and the others may be any.
  uint32_t at(uint64_t slot, uint32_t broken = 0);

 private:
  const std::vector<uint32_t>& epoch(uint64_t number);
  std::vector<uint32_t> full_permutation(uint64_t number) const;
  std::vector<uint32_t> windowed_permutation(uint64_t number) const;
  uint32_t balanced(uint64_t slot) const;

  OrderOptions options_;
  std::vector<std::vector<uint32_t>> by_class_;       // classes that have samples
  std::map<uint64_t, std::vector<uint32_t>> epochs_;  // the two newest
};

}  // namespace outrigger::feed
