#pragma once

#include <pthread.h>

#include <ctime>

#include "common/clock.h"

namespace outrigger {

/// Reads how long a thread, or all of this process, has run on processors so far; any thread may, 0
/// once that one has ended.
class ProcessorClock {
 public:
  static ProcessorClock of_this_thread() { return ProcessorClock(::pthread_self()); }
  static ProcessorClock of_this_process() {
    ProcessorClock clock(::pthread_self());
    clock.id_ = CLOCK_PROCESS_CPUTIME_ID;
    return clock;
  }
  /// The thread must be running now.
  explicit ProcessorClock(pthread_t thread) { ::pthread_getcpuclockid(thread, &id_); }

  Duration now() const {
    std::timespec time{};
    if (::clock_gettime(id_, &time) != 0) return Duration{0};
    return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
  }

 private:
  clockid_t id_ = CLOCK_THREAD_CPUTIME_ID;
};

}  // namespace outrigger
