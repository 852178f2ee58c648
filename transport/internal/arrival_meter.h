#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "common/clock.h"
#include "transport/internal/rate_meter.h"

namespace outrigger::transport {

/// The rate at which a peer's frames come in, by when the kernel had their parts and not by when
/// the reader had a processor. In the middle of a frame the peer has more to send, so that nothing
/// but the wire is waited for, unless this side was so late that it had no room for more. Times are
/// of one clock, the kernel's. Not thread-safe.
class ArrivalMeter {
 public:
  /// Before a part of a frame is read. `goes_on`: some of it came with what was read last.
  void begin(bool goes_on) {
    bytes_ = 0;
    took_ = Duration{0};
    if (!goes_on) arrived_.reset();
  }
  /// What was read now, and when the last of it came; absent: the kernel does not say. `ahead`:
  /// with something of what follows this part, for which the peer may have let us wait.
  void note(size_t bytes, bool ahead, std::optional<Duration> arrived, Duration now) {
    if (arrived && arrived_ && !ahead) {
      const bool late = read_ - *arrived_ > kLate;
      const Duration begin = late ? read_ : *arrived_;
      if (*arrived >= begin) {
        bytes_ += bytes;
        took_ += *arrived - begin;
      }
    }
    arrived_ = arrived;
    read_ = now;
  }
  void end() {
    // A clock that was set says nothing, and what the kernel took at once is not without an end.
    if (took_ < kMost) meter_.add(bytes_, std::max(took_, kLeast));
  }

  void begin_anew() { meter_.begin_anew(); }

  /// Bytes a second; 0: not known.
  double rate() const { return meter_.rate(); }

 private:
  /// Later than a thread that waits for bytes gets a processor, and sooner than a buffer is full.
  static constexpr Duration kLate = std::chrono::milliseconds(20);
  static constexpr Duration kLeast = std::chrono::microseconds(1);
  static constexpr Duration kMost = std::chrono::seconds(10);
  /// Fewer bytes, behind those that came first, tell little of the wire.
  static constexpr size_t kTelling = 4096;

  std::optional<Duration> arrived_;
  Duration read_{0};
  size_t bytes_ = 0;
  Duration took_{0};
  RateMeter meter_{kTelling};
};

}  // namespace outrigger::transport
