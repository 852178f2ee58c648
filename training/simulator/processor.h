#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/event_queue.h"

namespace outrigger::training {

/// Cores in virtual time: what runs at the same time shares them evenly, as an operating system
/// gives them out. Not thread-safe.
class Processor {
 public:
  /// `events` must outlive this.
  explicit Processor(EventQueue& events) : events_(events) {}
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  /// Begins work that takes so many seconds alone; `done` is called at its end.
  void start(double seconds, std::function<void()> done);

 private:
  struct Job {
    double left = 0;  // seconds alone
    std::function<void()> done;
  };
  /// Lets the jobs have what time has passed since.
  void progress();
  void expect_next();
  void finish(uint64_t expectation);

  EventQueue& events_;
  std::vector<Job> jobs_;
  TimePoint since_{};
  uint64_t expectation_ = 0;  // older ones no longer count
};

}  // namespace outrigger::training
