#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

#include "common/thread_pool.h"

namespace outrigger::worker {

/// How many times as long as its processor time work on some threads takes in the long run, by the
/// CPU quota of this process, which may change.
class Quota {
 public:
  explicit Quota(int threads) : threads_(threads) {}
  double slowdown() {
    constexpr std::chrono::milliseconds kLook{100};
    const auto now = std::chrono::steady_clock::now();
    if (now >= look_at_) {
      slowdown_ = std::max(1.0, threads_ / lasting_cores());
      look_at_ = now + kLook;
    }
    return slowdown_;
  }

 private:
  const int threads_;
  double slowdown_ = 1;
  std::chrono::steady_clock::time_point look_at_;
};

/// Time that work took, by the clock and of its thread's processor.
struct Spent {
  double clock = 0;
  double processor = 0;

  /// As it would be in the long run: with a quota a thread runs at full speed for a while and then
  /// not at all, so that a short piece tells little by the clock.
  float lasting(double slowdown) const {
    return static_cast<float>(slowdown > 1 ? std::max(clock, slowdown * processor) : clock);
  }
};

/// Adds the time of its life.
class Stopwatch {
 public:
  explicit Stopwatch(Spent& sum)
      : sum_(sum),
        begin_(std::chrono::steady_clock::now()),
        processor_begin_(processor_seconds()) {}
  ~Stopwatch() {
    sum_.processor += processor_seconds() - processor_begin_;
    sum_.clock += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  /// Of this thread, so far.
  static double processor_seconds() {
    constexpr double kNano = 1e-9;
    std::timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + kNano * static_cast<double>(time.tv_nsec);
  }

  Spent& sum_;
  const std::chrono::steady_clock::time_point begin_;
  const double processor_begin_;
};

}  // namespace outrigger::worker
