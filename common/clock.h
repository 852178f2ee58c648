#pragma once

#include <chrono>

namespace outrigger {

using Duration = std::chrono::nanoseconds;
/// A point on a monotonic clock; never compared between machines.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
/// Rounded up.
inline Duration from_seconds(double seconds) {
  return std::chrono::ceil<Duration>(std::chrono::duration<double>(seconds));
}

/// Where parts read the time, so that tests own it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The machine's monotonic clock.
class SystemClock final : public Clock {
 public:
  TimePoint now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
};

/// What the machine's monotonic clock shows, for code whose tests need not own the time.
inline TimePoint system_now() { return SystemClock().now(); }

}  // namespace outrigger
