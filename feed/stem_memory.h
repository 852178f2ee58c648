#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace outrigger::feed {

/// What stems of a plan take in a worker, in bytes.
struct StemMemory {
  double fixed = 0;  // to be given any
  double each = 0;   // and for each that it may hold at once
  bool operator==(const StemMemory&) const = default;

  /// How many stems one of so many workers may hold that share `away` of a step: of those that
  /// train a fast one takes more than its part, frozen ones are sent off one by one.
  static double held(uint32_t away, bool trains, size_t workers) {
    const double all = away;
    const double share = all / static_cast<double>(std::max<size_t>(1, workers));
    return trains ? std::min(all, share + 1) : 1;
  }
  /// What such a worker needs.
  double needs(uint32_t away, bool trains, size_t workers) const {
    return fixed + each * held(away, trains, workers);
  }
};

/// How much memory a worker must have to be given stems: as many of those that have `has` as can
/// hold their part share them, the others make pixels only. Infinite where nobody can.
double memory_for_stems(const StemMemory& memory, uint32_t away, bool trains,
                        std::vector<double> has);

}  // namespace outrigger::feed
