#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "common/clock.h"

namespace outrigger::kube {

/// A clock that can also be waited on, so that tests own waiting as well. Thread-safe.
class Timer : public Clock {
 public:
  /// Waits on `changed` until it is notified, `deadline` has come or `stop` is requested; may also
  /// return for no reason, so callers look again at what they wait for. `lock` is held on return.
  virtual void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
                          const std::stop_token& stop, TimePoint deadline) const = 0;

  /// False if `stop` was requested before `time` had passed.
  bool sleep(Duration time, const std::stop_token& stop) const;

  /// The machine's monotonic clock.
  static const Timer& system();
};

}  // namespace outrigger::kube
