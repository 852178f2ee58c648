#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/clock.h"

namespace outrigger::worker {

/// What a worker's log says of reads that failed: the first at once, and where more follow a line
/// every ten seconds. Not thread-safe.
class ReadFailures {
 public:
  /// The line for the log; nothing so soon behind the last one.
  std::optional<std::string> note(const std::string& reason, TimePoint now) {
    constexpr std::chrono::seconds kPause{10};
    if (told_at_ && now < *told_at_ + kPause) {
      ++untold_;
      return std::nullopt;
    }
    std::string line = "a lease is given back, since a read failed: " + reason;
    if (untold_ > 0) line += " (and " + std::to_string(untold_) + " more since this was last said)";
    told_at_ = now;
    untold_ = 0;
    return line;
  }

 private:
  std::optional<TimePoint> told_at_;
  int untold_ = 0;
};

}  // namespace outrigger::worker
