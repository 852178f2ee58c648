#pragma once

#include <atomic>

#include "common/clock.h"

namespace outrigger::fakes {

/// Time that stands still until a test moves it. Thread-safe.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint{} + Duration{since_start_.load()}; }
  void advance(Duration by) { since_start_ += by.count(); }

 private:
  std::atomic<Duration::rep> since_start_{0};
};

}  // namespace outrigger::fakes
