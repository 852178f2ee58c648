#pragma once

#include <chrono>

namespace outrigger {

using Duration = std::chrono::nanoseconds;
/// A point on a monotonic clock; never compared between machines.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

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

}  // namespace outrigger
