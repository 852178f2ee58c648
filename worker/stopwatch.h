#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/processor_clock.h"
#include "common/thread_pool.h"

namespace outrigger::worker {

/// How many times as long as its processor time work on some threads takes in the long run, by the
/// CPU quota of this process, which may change.
class Quota {
 public:
  explicit Quota(int threads) : threads_(threads) {}
  double slowdown() {
    constexpr std::chrono::milliseconds kLook{100};
    const TimePoint now = system_now();
    if (now >= look_at_) {
      slowdown_ = std::max(1.0, threads_ / lasting_cores());
      look_at_ = now + kLook;
    }
    return slowdown_;
  }

 private:
  const int threads_;
  double slowdown_ = 1;
  TimePoint look_at_;
};

/// Seconds that work took: by the clock, of its thread's processor, and what a neighbour's thread,
/// which works on the same cores, had of those meanwhile.
struct Spent {
  double clock = 0;
  double processor = 0;
  double neighbour = 0;

  /// As it would be in the long run, without the neighbour. With a quota a thread runs at full
  /// speed for a while and then not at all, so that a short piece tells little by the clock.
  /// `waited`: of the clock's, for what is not on cores, while which the neighbour disturbs nobody.
  double lasting(double slowdown, double waited = 0) const {
    const double alone = std::min(clock, std::max(clock - neighbour, processor + waited));
    return slowdown > 1 ? std::max(alone, slowdown * processor) : alone;
  }
};

/// Adds the time of its life.
class Stopwatch {
 public:
  explicit Stopwatch(Spent& sum, const std::optional<ProcessorClock>& neighbour = {})
      : sum_(sum), neighbour_(neighbour), begin_(now()) {}
  ~Stopwatch() {
    const Times end = now();
    sum_.clock += to_seconds(end.clock - begin_.clock);
    sum_.processor += to_seconds(end.processor - begin_.processor);
    sum_.neighbour += to_seconds(end.neighbour - begin_.neighbour);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  struct Times {
    TimePoint clock;
    Duration processor;
    Duration neighbour;
  };
  Times now() const {
    return {system_now(), own_.now(), neighbour_ ? neighbour_->now() : Duration{0}};
  }

  Spent& sum_;
  const std::optional<ProcessorClock> neighbour_;
  const ProcessorClock own_ = ProcessorClock::of_this_thread();
  const Times begin_;
};

}  // namespace outrigger::worker
