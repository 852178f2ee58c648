#include "kube/control/work_queue.h"

#include <algorithm>

#include "kube/client/retry.h"

namespace outrigger::kube {
namespace {

/// Of so many keys that are taken, one is of low priority where such have waited for long.
constexpr int kTurns = 5;

constexpr std::array<TimePoint, 2> kNever{TimePoint::max(), TimePoint::max()};

}  // namespace

WorkQueue::WorkQueue(WorkQueueOptions options)
    : options_(std::move(options)), bucket_(options_.bucket, options_.timer->now()) {}

void WorkQueue::add(const std::string& key, Priority priority) {
  const std::scoped_lock lock(mutex_);
  add_locked(key, priority);
  wake_one();
}

// Whoever is idle, so that the one who watches goes on watching.
void WorkQueue::wake_one() {
  if (idle_ > 0) {
    ready_changed_.notify_one();
  } else if (watched_) {
    due_changed_.notify_one();
  }
}

void WorkQueue::add_locked(const std::string& key, Priority priority) {
  if (shut_down_) return;
  const auto [found, added] =
      wanted_.try_emplace(key, Wanted{options_.timer->now(), priority, std::nullopt});
  Wanted& wanted = found->second;
  if (added) {
    options_.observer->queue_added(options_.name);
    if (!taken_.contains(key)) line_up(key, wanted);  // else done() does
  } else if (priority < wanted.priority) {
    const bool ready = wanted.place.has_value();
    step_out(wanted);
    wanted.priority = priority;
    if (ready) line_up(key, wanted);
  }
}

void WorkQueue::line_up(const std::string& key, Wanted& wanted) {
  wanted.place = places_++;
  lane(wanted.priority).emplace(*wanted.place, key);
  options_.observer->queue_depth(options_.name, ready());
}

void WorkQueue::step_out(Wanted& wanted) {
  if (wanted.place) lane(wanted.priority).erase(*wanted.place);
  wanted.place.reset();
}

void WorkQueue::add_after(const std::string& key, Duration wait, Priority priority) {
  if (wait <= Duration::zero()) {
    add(key, priority);
    return;
  }
  const std::scoped_lock lock(mutex_);
  if (shut_down_) return;
  const TimePoint due = options_.timer->now() + wait;
  Dues& dues = waiting_until_.try_emplace(key, kNever).first->second;
  for (const Priority one : {Priority::kNormal, Priority::kLow}) {
    TimePoint& other = dues[static_cast<size_t>(one)];
    // An earlier one serves as well, unless it may be passed over when it comes due.
    if (one <= priority && other <= due) return;
    if (one < priority || other == TimePoint::max() || other < due) continue;
    waiting_.erase({other, key, one});
    other = TimePoint::max();
  }
  dues[static_cast<size_t>(priority)] = due;
  const auto placed = waiting_.insert({due, key, priority}).first;
  if (placed != waiting_.begin()) return;  // not in one expression: either may come first there
  if (watched_) {
    due_changed_.notify_one();
  } else {
    wake_one();  // to watch
  }
}

void WorkQueue::add_rate_limited(const std::string& key, Duration at_least) {
  Duration wait;
  {
    const std::scoped_lock lock(mutex_);
    const BackOff back_off{options_.first_wait, options_.longest_wait};
    wait = std::max(
        {back_off.after(++failures_[key], 0), bucket_.take(options_.timer->now()), at_least});
  }
  options_.observer->queue_retried(options_.name);
  add_after(key, wait);
}

void WorkQueue::forget(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  failures_.erase(key);
}

int WorkQueue::failures(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

void WorkQueue::move_due(TimePoint now) {
  while (!waiting_.empty() && waiting_.begin()->due <= now) {
    const auto first = waiting_.extract(waiting_.begin());
    const Waiting& waiting = first.value();
    const auto dues = waiting_until_.find(waiting.key);
    dues->second[static_cast<size_t>(waiting.priority)] = TimePoint::max();
    if (dues->second == kNever) waiting_until_.erase(dues);
    add_locked(waiting.key, waiting.priority);
  }
}

TimePoint WorkQueue::next_due() const {
  return waiting_.empty() ? TimePoint::max() : waiting_.begin()->due;
}

std::optional<std::string> WorkQueue::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const TimePoint now = options_.timer->now();
    move_due(now);
    if (ready() > 0) return take_first(now);
    if (shut_down_) return std::nullopt;
    wait(lock, stop);
  }
  wake_one();  // what woke this thread may have been meant for one that goes on
  return std::nullopt;
}

// One thread watches the time. If all did, each key that comes due would wake all of them.
void WorkQueue::wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  if (watched_) {
    ++idle_;
    options_.timer->wait_until(lock, ready_changed_, stop, TimePoint::max());
    --idle_;
  } else {
    watched_ = true;
    options_.timer->wait_until(lock, due_changed_, stop, next_due());
    watched_ = false;
  }
}

WorkQueue::Lane& WorkQueue::next_lane(TimePoint now) {
  Lane& normal = lane(Priority::kNormal);
  Lane& low = lane(Priority::kLow);
  if (normal.empty()) return low;
  if (low.empty() || normal_in_a_row_ + 1 < kTurns) return normal;
  const TimePoint since = wanted_.at(low.begin()->second).since;
  return now - since >= options_.patience ? low : normal;
}

std::string WorkQueue::take_first(TimePoint now) {
  Lane& from = next_lane(now);
  normal_in_a_row_ = &from == &lane(Priority::kLow) ? 0 : std::min(normal_in_a_row_ + 1, kTurns);
  std::string key = std::move(from.begin()->second);
  from.erase(from.begin());
  const TimePoint since = wanted_.extract(key).mapped().since;
  taken_.emplace(key, now);
  options_.observer->queue_depth(options_.name, ready());
  options_.observer->queue_waited(options_.name, now - since);
  // Several may have come due at once and woken this thread alone; and somebody has to watch.
  if (ready() > 0 || (!watched_ && !waiting_.empty())) wake_one();
  return key;
}

void WorkQueue::done(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto taken = taken_.extract(key);
  if (taken.empty()) return;
  options_.observer->queue_worked(options_.name, options_.timer->now() - taken.mapped());
  const auto wanted = wanted_.find(key);
  if (wanted == wanted_.end()) return;
  line_up(key, wanted->second);
  wake_one();
}

void WorkQueue::shut_down() {
  const std::scoped_lock lock(mutex_);
  shut_down_ = true;
  waiting_.clear();
  waiting_until_.clear();
  ready_changed_.notify_all();
  due_changed_.notify_all();
}

size_t WorkQueue::size() const {
  const std::scoped_lock lock(mutex_);
  return ready();
}

void WorkQueue::tell_of_work() const {
  const std::scoped_lock lock(mutex_);
  const TimePoint now = options_.timer->now();
  Observer::Work work;
  for (const auto& [key, since] : taken_) {
    work.unfinished += now - since;
    work.longest = std::max(work.longest, now - since);
  }
  options_.observer->queue_works(options_.name, work);
}

}  // namespace outrigger::kube
