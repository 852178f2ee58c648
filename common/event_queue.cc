#include "common/event_queue.h"

#include <algorithm>
#include <utility>

#include "common/error.h"

namespace outrigger {

bool EventQueue::later(const Event& a, const Event& b) {
  return std::pair(a.at, a.number) > std::pair(b.at, b.number);
}

void EventQueue::at(TimePoint when, std::function<void()> run) {
  events_.push_back({std::max(when, now_), next_number_++, std::move(run)});
  std::ranges::push_heap(events_, later);
}

void EventQueue::run_one() {
  ensure(!events_.empty(), "the simulated world goes on");
  std::ranges::pop_heap(events_, later);
  const Event event = std::move(events_.back());
  events_.pop_back();
  now_ = event.at;
  event.run();
}

void EventQueue::advance_to(TimePoint when) {
  ensure(events_.empty() || when <= next(), "no event is passed over");
  now_ = std::max(now_, when);
}

}  // namespace outrigger
