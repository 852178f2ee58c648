#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/clock.h"

namespace outrigger {

/// What will happen in a simulated world, and its clock: time stands still but between two events.
/// Events of one moment happen in the order in which they were added. Not thread-safe.
class EventQueue final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  /// A moment that has passed counts as now.
  void at(TimePoint when, std::function<void()> run);
  void after(Duration delay, std::function<void()> run) { at(now_ + delay, std::move(run)); }
  bool empty() const { return events_.empty(); }
  /// When the next event happens; there must be one.
  TimePoint next() const { return events_.front().at; }
  /// Lets time go on to the next event, which there must be, and runs it.
  void run_one();
  /// Lets time go on without an event: to a moment that is not behind the next one.
  void advance_to(TimePoint when);

 private:
  struct Event {
    TimePoint at;
    uint64_t number = 0;
    size_t place = 0;  // in actions_
  };
  static bool later(const Event& a, const Event& b);

  TimePoint now_{};
  uint64_t next_number_ = 0;
  std::vector<Event> events_;  // a heap, the earliest in front
  std::vector<std::function<void()>> actions_;
  std::vector<size_t> free_;  // of their places
};

}  // namespace outrigger
