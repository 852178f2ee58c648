#include "kube/timer.h"

#include <utility>

namespace outrigger::kube {
namespace {

class SystemTimer final : public Timer {
 public:
  TimePoint now() const override { return SystemClock().now(); }

  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
                  const std::stop_token& stop, TimePoint deadline) const override {
    // The predicate holds on the second look: one wait, whatever ends it, and no lost stop request.
    bool waited = false;
    const auto one_wait = [&waited] { return std::exchange(waited, true); };
    if (deadline == TimePoint::max()) {
      changed.wait(lock, stop, one_wait);
    } else {
      changed.wait_until(lock, stop, deadline, one_wait);
    }
  }
};

}  // namespace

bool Timer::sleep(Duration time, const std::stop_token& stop) const {
  std::mutex mutex;
  std::condition_variable_any never;
  const TimePoint deadline = now() + time;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && now() < deadline) wait_until(lock, never, stop, deadline);
  return !stop.stop_requested();
}

const Timer& Timer::system() {
  static const SystemTimer timer;
  return timer;
}

}  // namespace outrigger::kube
