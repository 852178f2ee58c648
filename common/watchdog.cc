#include "common/watchdog.h"

#include <algorithm>
#include <string>
#include <utility>

namespace outrigger {

Watchdog::Watchdog(const WatchdogOptions& options, const Clock& clock,
                   std::function<uint64_t()> progress, std::function<void(const std::string&)> bark)
    : options_(options),
      clock_(clock),
      progress_(std::move(progress)),
      bark_(std::move(bark)),
      seen_(progress_()),
      since_(clock.now()),
      looked_(since_),
      thread_([this](const std::stop_token& over) { watch(over); }) {}

void Watchdog::set_progress_limit(Duration limit) {
  const std::scoped_lock lock(mutex_);
  options_.progress = limit;
}

void Watchdog::expect_end() {
  const std::scoped_lock lock(mutex_);
  if (ending_) return;
  ending_ = true;
  since_ = clock_.now();
}

void Watchdog::forgive_freeze(TimePoint now) {
  const Duration gap = now - std::exchange(looked_, now);
  if (gap > options_.freeze) since_ = std::min(since_ + gap - options_.look, now);
}

std::string Watchdog::overdue() {
  const std::scoped_lock lock(mutex_);
  const TimePoint now = clock_.now();
  forgive_freeze(now);
  const uint64_t present = progress_();
  if (present != seen_ && !ending_) {
    seen_ = present;
    since_ = now;
    progressed_ = true;
  }
  const Duration limit = ending_       ? options_.stop
                         : progressed_ ? options_.progress
                                       : options_.startup;
  if (now - since_ < limit) return "";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  const std::string within = " within " + std::to_string(seconds) + " s";
  if (ending_) return "the run was asked to stop and did not" + within;
  return progressed_ ? "no progress" + within : "no first micro-batch" + within;
}

void Watchdog::watch(const std::stop_token& over) {
  while (!over.stop_requested()) {
    if (const std::string what = overdue(); !what.empty()) {
      bark_(what);
      return;
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, over, options_.look, [] { return false; });
  }
}

}  // namespace outrigger
