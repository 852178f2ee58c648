#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "common/clock.h"
#include "common/thread_pool.h"

namespace outrigger::worker {

struct GrowthOptions {
  std::function<int()> cores = available_cores;
  Duration look = std::chrono::seconds(2);
  int looks = 5;  // in a row that must show it
};

/// Asks a session to end once this process may use more cores than its pool has threads, and could
/// for a while: a pod's limit that was raised in place, say. A worker has no state, so it joins
/// again with a larger pool. With fewer cores than threads it goes on, as a quota lets it.
class Growth {
 public:
  Growth(int threads, std::stop_source session, GrowthOptions options = {});
  /// Whether it asked for that.
  bool seen() const { return seen_; }

 private:
  void watch(int threads, const std::stop_source& session, const GrowthOptions& options,
             const std::stop_token& over);

  std::atomic<bool> seen_{false};
  std::jthread watcher_;
};

}  // namespace outrigger::worker
