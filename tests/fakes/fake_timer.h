#pragma once

#include <algorithm>
#include <set>
#include <thread>

#include "kube/timer.h"

namespace outrigger::fakes {

/// Time that passes when the test says so. With `kJump`, waiting makes it pass: whoever waits until
/// a moment finds himself there at once. Thread-safe.
class FakeTimer final : public kube::Timer {
 public:
  enum class Waiting { kStands, kJump };
  explicit FakeTimer(Waiting waiting = Waiting::kStands) : waiting_(waiting) {}

  TimePoint now() const override {
    const std::scoped_lock lock(mutex_);
    return now_;
  }
  void advance(Duration time) {
    const std::scoped_lock lock(mutex_);
    now_ += time;
  }
  /// Waits until so many threads wait for moments within the next `time`: each has done what there
  /// was to do and is asleep. False after twenty (real) seconds.
  bool wait_for_sleepers(size_t count, Duration time) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (sleepers_within(time) < count) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
                  const std::stop_token& stop, TimePoint deadline) const override {
    std::unique_lock own(mutex_);
    if (waiting_ == Waiting::kJump && deadline != TimePoint::max()) {
      now_ = std::max(now_, deadline);
      return;
    }
    const auto entry = deadlines_.insert(deadline);
    own.unlock();
    // Nobody is told when time moves; looking again soon costs a test nothing.
    if (!stop.stop_requested()) changed.wait_for(lock, std::chrono::milliseconds(1));
    own.lock();
    deadlines_.erase(entry);
  }

 private:
  size_t sleepers_within(Duration time) const {
    const std::scoped_lock lock(mutex_);
    return static_cast<size_t>(
        std::distance(deadlines_.upper_bound(now_), deadlines_.upper_bound(now_ + time)));
  }

  const Waiting waiting_;
  mutable std::mutex mutex_;
  mutable TimePoint now_{std::chrono::hours(1)};
  mutable std::multiset<TimePoint> deadlines_;  // of those who wait
};

}  // namespace outrigger::fakes
