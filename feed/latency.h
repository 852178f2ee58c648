#pragma once

#include <array>
#include <cstddef>

#include "common/clock.h"

namespace outrigger::feed {

/// The newest 128 durations of one kind of work, for the 95th percentile that decides on second
/// leases.
class LatencyWindow {
 public:
  void add(Duration duration);
  /// Zero before the first.
  Duration percentile95() const;

 private:
  std::array<Duration, 128> durations_{};
  size_t count_ = 0;
  size_t next_ = 0;
};

}  // namespace outrigger::feed
