#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include "kube/control/token_bucket.h"
#include "kube/observer.h"
#include "kube/timer.h"

namespace outrigger::kube {

struct WorkQueueOptions {
  /// For metrics and logs.
  std::string name = "queue";
  /// add_rate_limited(): a key's wait doubles with each failure, from first to longest; all keys
  /// together are held to the bucket.
  Duration first_wait = std::chrono::milliseconds(5);
  Duration longest_wait = std::chrono::seconds(300);
  TokenBucket::Options bucket = {};
  const Timer* timer = &Timer::system();
  Observer* observer = &Observer::none();
};

/// Keys that want work, first come first served (after client-go's workqueue). A key is in it once,
/// however often it was added; a key that is worked on is given to nobody else, and comes again if
/// it was added meanwhile. So what a worker has seen of a key is never older than the last add
/// before it took the key, and two workers never have the same one. Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(WorkQueueOptions options = {});

  void add(const std::string& key);
  /// Adds it once `wait` has passed; if it waits already, the earlier of both. Does nothing to a
  /// key that is in the queue now: it comes sooner.
  void add_after(const std::string& key, Duration wait);
  /// add_after() with the key's next back-off.
  void add_rate_limited(const std::string& key);
  /// The key's work succeeded: its back-off begins anew. Does not take it out of the queue.
  void forget(const std::string& key);
  /// How often add_rate_limited() was called since it was forgotten.
  int failures(const std::string& key) const;

  /// Waits for a key and takes it; nothing after shut_down(), when the queue is empty, or once
  /// `stop` is requested. Whoever has taken a key calls done().
  std::optional<std::string> take(const std::stop_token& stop = {});
  void done(const std::string& key);

  /// From now on nothing is added and what waits for its time is dropped; what is in the queue is
  /// still handed out.
  void shut_down();
  /// Keys ready to be taken.
  size_t size() const;

 private:
  void add_locked(const std::string& key);
  void wake_one();
  void wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  std::string take_first(TimePoint now);
  void move_due(TimePoint now);
  TimePoint next_due() const;

  const WorkQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any ready_changed_;  // for those who only wait for a key
  std::condition_variable_any due_changed_;    // for the one who waits for waiting_ as well
  int idle_ = 0;                               // threads that wait on ready_changed_
  bool watched_ = false;                       // whether one waits on due_changed_
  std::deque<std::string> ready_;
  std::unordered_map<std::string, TimePoint> wanted_;  // keys to be worked on, since when
  std::unordered_map<std::string, TimePoint> taken_;   // keys worked on, since when
  std::set<std::pair<TimePoint, std::string>> waiting_;
  std::unordered_map<std::string, TimePoint> waiting_until_;
  std::unordered_map<std::string, int> failures_;
  TokenBucket bucket_;
  bool shut_down_ = false;
};

}  // namespace outrigger::kube
