#pragma once

#include <algorithm>
#include <list>
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
    ++advances_;
  }
  /// Waits until so many threads wait for moments within the next `time`: each has seen what time
  /// it is, has done what there was to do and is asleep. False after twenty (real) seconds.
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
    const auto entry = sleepers_.insert(sleepers_.end(), {deadline, advances_});
    own.unlock();
    // Nobody is told when time moves; looking again soon costs a test nothing.
    if (!stop.stop_requested()) changed.wait_for(lock, std::chrono::milliseconds(1));
    own.lock();
    sleepers_.erase(entry);
  }

 private:
  struct Sleeper {
    TimePoint deadline;
    uint64_t since;  // advances of the time; one who has slept through the last may want another
  };

  size_t sleepers_within(Duration time) const {
    const std::scoped_lock lock(mutex_);
    return static_cast<size_t>(std::ranges::count_if(sleepers_, [&](const Sleeper& sleeper) {
      return sleeper.since == advances_ && sleeper.deadline > now_ &&
             sleeper.deadline <= now_ + time;
    }));
  }

  const Waiting waiting_;
  mutable std::mutex mutex_;
  mutable TimePoint now_{std::chrono::hours(1)};
  uint64_t advances_ = 0;
  mutable std::list<Sleeper> sleepers_;
};

}  // namespace outrigger::fakes
