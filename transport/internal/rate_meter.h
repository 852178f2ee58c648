#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/clock.h"

namespace outrigger::transport {

/// The rate at which a link's big pieces were written, or arrived, lately. Small ones tell when the
/// processor had time for them, not how fast the link is. Not thread-safe.
class RateMeter {
 public:
  /// `least`: bytes of a piece that counts.
  explicit RateMeter(size_t least) : least_(least) {}

  void add(size_t bytes, Duration took) {
    if (bytes < least_) return;
    const double seconds = std::chrono::duration<double>(took).count();
    const double kept = std::exp(-std::max(seconds / kSeconds, 1.0 / kPieces));
    bytes_ = kept * bytes_ + static_cast<double>(bytes);
    seconds_ = kept * seconds_ + seconds;
    ++pieces_;
  }

  /// What was added so far tells the rate only until enough is added from now on.
  void begin_anew() {
    before_ = rate();
    pieces_ = 0;
    bytes_ = seconds_ = 0;
  }

  /// Bytes a second; 0: not known.
  double rate() const { return pieces_ < kEnough || seconds_ <= 0 ? before_ : bytes_ / seconds_; }

 private:
  /// What counts: about so long of writing, or so many pieces where those take less.
  static constexpr double kSeconds = 0.5;
  static constexpr double kPieces = 64;
  static constexpr size_t kEnough = 4;

  const size_t least_;
  size_t pieces_ = 0;
  double bytes_ = 0;
  double seconds_ = 0;
  double before_ = 0;
};

}  // namespace outrigger::transport
