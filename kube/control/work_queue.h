#pragma once

#include <array>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <map>
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
  /// A key of low priority that was ready for so long no longer waits until nothing else is ready:
  /// of five keys that are taken, one is such.
  Duration patience = std::chrono::seconds(5);
  const Timer* timer = &Timer::system();
  Observer* observer = &Observer::none();
};

/// Low: taken when nothing else is ready, or once it has waited for long.
enum class Priority : uint8_t { kNormal, kLow };

/// Keys that want work, first come first served within a priority (after client-go's workqueue and
/// controller-runtime's priority queue). A key is in it once, however often it was added, at the
/// highest priority that it was added with; a key that is worked on is given to nobody else, and
/// comes again if it was added meanwhile. So what a worker has seen of a key is never older than
/// the last add before it took the key, and two workers never have the same one. Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(WorkQueueOptions options = {});

  void add(const std::string& key, Priority priority = Priority::kNormal);
  /// Adds it once `wait` has passed. If it waits already, the earlier of both; the later one stays
  /// where it is of higher priority.
  void add_after(const std::string& key, Duration wait, Priority priority = Priority::kNormal);
  /// add_after() with the key's next back-off, or with `at_least` where that is longer.
  void add_rate_limited(const std::string& key, Duration at_least = Duration::zero());
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
  /// Tells the observer how long the keys that are worked on now have been. Call it every few
  /// seconds: a key whose work hangs causes no call by itself.
  void tell_of_work() const;

 private:
  struct Wanted {
    TimePoint since;
    Priority priority;
    std::optional<uint64_t> place;  // among those of its priority that are ready
  };
  struct Waiting {
    TimePoint due;
    std::string key;
    Priority priority;
    auto operator<=>(const Waiting&) const = default;
  };
  using Dues = std::array<TimePoint, 2>;  // by priority; the end of time where it does not wait
  using Lane = std::map<uint64_t, std::string>;

  void add_locked(const std::string& key, Priority priority);
  void line_up(const std::string& key, Wanted& wanted);
  void step_out(Wanted& wanted);
  Lane& lane(Priority priority) { return ready_[static_cast<size_t>(priority)]; }
  size_t ready() const { return ready_[0].size() + ready_[1].size(); }
  Lane& next_lane(TimePoint now);
  void wake_one();
  void wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  std::string take_first(TimePoint now);
  void move_due(TimePoint now);
  TimePoint next_due() const;

  const WorkQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any ready_changed_;         // for those who only wait for a key
  std::condition_variable_any due_changed_;           // for the one who waits for waiting_ as well
  int idle_ = 0;                                      // threads that wait on ready_changed_
  bool watched_ = false;                              // whether one waits on due_changed_
  std::array<Lane, 2> ready_;                         // by priority
  uint64_t places_ = 0;                               // given so far
  int normal_in_a_row_ = 0;                           // taken since one of low priority
  std::unordered_map<std::string, Wanted> wanted_;    // keys to be worked on
  std::unordered_map<std::string, TimePoint> taken_;  // keys worked on, since when
  std::set<Waiting> waiting_;
  std::unordered_map<std::string, Dues> waiting_until_;
  std::unordered_map<std::string, int> failures_;
  TokenBucket bucket_;
  bool shut_down_ = false;
};

}  // namespace outrigger::kube
