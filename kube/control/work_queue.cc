#include "kube/control/work_queue.h"

#include <algorithm>

#include "kube/client/retry.h"

namespace outrigger::kube {

WorkQueue::WorkQueue(WorkQueueOptions options)
    : options_(std::move(options)), bucket_(options_.bucket, options_.timer->now()) {}

void WorkQueue::add(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  add_locked(key);
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

void WorkQueue::add_locked(const std::string& key) {
  if (shut_down_) return;
  const TimePoint now = options_.timer->now();
  if (!wanted_.emplace(key, now).second) return;
  options_.observer->queue_added(options_.name);
  if (taken_.contains(key)) return;  // done() puts it in
  ready_.push_back(key);
  options_.observer->queue_depth(options_.name, ready_.size());
}

void WorkQueue::add_after(const std::string& key, Duration wait) {
  if (wait <= Duration::zero()) {
    add(key);
    return;
  }
  const std::scoped_lock lock(mutex_);
  if (shut_down_) return;
  const TimePoint due = options_.timer->now() + wait;
  const auto [found, added] = waiting_until_.emplace(key, due);
  if (!added && found->second <= due) return;
  if (!added) waiting_.erase({found->second, key});
  found->second = due;
  waiting_.emplace(due, key);
  if (waiting_.begin()->second != key) return;
  if (watched_) {
    due_changed_.notify_one();
  } else {
    wake_one();  // to watch
  }
}

void WorkQueue::add_rate_limited(const std::string& key) {
  Duration wait;
  {
    const std::scoped_lock lock(mutex_);
    const BackOff back_off{options_.first_wait, options_.longest_wait};
    wait = std::max(back_off.after(++failures_[key], 0), bucket_.take(options_.timer->now()));
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
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const std::string key = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    waiting_until_.erase(key);
    add_locked(key);
  }
}

TimePoint WorkQueue::next_due() const {
  return waiting_.empty() ? TimePoint::max() : waiting_.begin()->first;
}

std::optional<std::string> WorkQueue::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const TimePoint now = options_.timer->now();
    move_due(now);
    if (!ready_.empty()) return take_first(now);
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

std::string WorkQueue::take_first(TimePoint now) {
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  const auto since = wanted_.extract(key).mapped();
  taken_.emplace(key, now);
  options_.observer->queue_depth(options_.name, ready_.size());
  options_.observer->queue_waited(options_.name, now - since);
  // Several may have come due at once and woken this thread alone; and somebody has to watch.
  if (!ready_.empty() || (!watched_ && !waiting_.empty())) wake_one();
  return key;
}

void WorkQueue::done(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto taken = taken_.extract(key);
  if (taken.empty()) return;
  options_.observer->queue_worked(options_.name, options_.timer->now() - taken.mapped());
  if (!wanted_.contains(key)) return;
  ready_.push_back(key);
  options_.observer->queue_depth(options_.name, ready_.size());
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
  return ready_.size();
}

}  // namespace outrigger::kube
