#include "common/event_queue.h"

#include <algorithm>
#include <utility>

#include "common/error.h"

namespace outrigger {

bool EventQueue::later(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.number > b.number;
}

void EventQueue::at(TimePoint when, std::function<void()> run) {
  if (free_.empty()) {
    free_.push_back(actions_.size());
    actions_.emplace_back();
  }
  const size_t place = free_.back();
  free_.pop_back();
  actions_[place] = std::move(run);
  events_.push_back({std::max(when, now_), next_number_++, place});
  std::ranges::push_heap(events_, later);
}

void EventQueue::run_one() {
  ensure(!events_.empty(), "the simulated world goes on");
  std::ranges::pop_heap(events_, later);
  const Event event = events_.back();
  events_.pop_back();
  now_ = event.at;
  const auto action = std::exchange(actions_[event.place], nullptr);
  free_.push_back(event.place);
  action();
}

void EventQueue::advance_to(TimePoint when) {
  ensure(events_.empty() || when <= next(), "no event is passed over");
  now_ = std::max(now_, when);
}

}  // namespace outrigger
