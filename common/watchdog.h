#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "common/clock.h"

namespace outrigger {

struct WatchdogOptions {
  Duration startup{};                       // how long the first sign of progress may take
  Duration progress{};                      // and each further one
  Duration stop{};                          // how long the end may take, once it was asked for
  Duration look = std::chrono::seconds(1);  // how often it looks
  // A longer time between two looks does not count: the whole process stood still.
  Duration freeze = std::chrono::seconds(5);
};

/// Sees to it that no run hangs for ever: when a number that should grow has stood still for too
/// long, it calls `bark` on a thread of its own, once, with what was waited for. The trainer may be
/// stuck in a driver, a file system or a lock, so nothing but ending the process helps then.
class Watchdog {
 public:
  /// `progress` is asked from the watchdog's thread. `clock` must outlive this.
  Watchdog(const WatchdogOptions& options, const Clock& clock, std::function<uint64_t()> progress,
           std::function<void(const std::string&)> bark);

  /// From now on each sign of progress but the first may take so long.
  void set_progress_limit(Duration limit);
  /// From now on the end is what is waited for, not progress.
  void expect_end();

 private:
  void watch(const std::stop_token& over);
  void forgive_freeze(TimePoint now);
  /// What is overdue; empty: nothing.
  std::string overdue();

  WatchdogOptions options_;  // under mutex_
  const Clock& clock_;
  const std::function<uint64_t()> progress_;
  const std::function<void(const std::string&)> bark_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t seen_;
  bool progressed_ = false;
  bool ending_ = false;
  TimePoint since_;
  TimePoint looked_;
  std::jthread thread_;
};

}  // namespace outrigger
