#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "data/sample.h"
#include "gpu-server/ranks/agreement.h"

namespace outrigger::gpu_server {

/// What all ranks have found broken. Each finds samples of its own part of the batches; the job's
/// limit is on all of them, and the first rank saves them for all. They are counted and told, no
/// more: what a slot shows of a sample may be whole where another's part of it was not. Not
/// thread-safe.
class BrokenSamples {
 public:
  /// `known`: of the checkpoint, which all ranks have. `dataset` must outlive this.
  BrokenSamples(const data::Dataset& dataset, double max_bad_fraction,
                const std::vector<uint32_t>& known);

  /// Whether a rank that found `own`, ascending, has any that the others were not told of.
  bool has_news(std::span<const uint32_t> own) const;
  /// Tells the others of its own, and hears of theirs; all ranks call it between the same two
  /// steps. Throws InvalidInput, on all alike, where they are more than the job allows.
  void share(Agreement& agreement, std::span<const uint32_t> own);
  /// What all ranks found, and `own`; ascending.
  std::vector<uint32_t> with(std::span<const uint32_t> own) const;

 private:
  void check() const;

  const data::Dataset& dataset_;
  const size_t allowed_;
  std::set<uint32_t> known_;  // to all ranks
};

}  // namespace outrigger::gpu_server
