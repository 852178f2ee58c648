#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/error.h"
#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda::testing {

/// The order of a device's work, done on the host as late as is allowed: nothing runs until
/// somebody waits for it. Who reads before it waits, or overwrites what is still to be read, gets
/// it wrong.
class HostQueues {
 public:
  using Task = std::function<void()>;

  void push(Queue queue, Task task) {
    if (recording_ != nullptr) {
      ensure(queue == Queue::kWork, "only work is recorded");
      recording_->push_back(std::move(task));
      return;
    }
    lanes_[static_cast<size_t>(queue)].tasks.push_back(std::move(task));
  }
  void run_all() {
    ensure(recording_ == nullptr, "who records does not wait");
    for (const Queue queue : {Queue::kWork, Queue::kCopies}) run_until(queue, pushed(queue));
  }
  /// How many tasks were pushed so far.
  size_t pushed(Queue queue) const {
    const Lane& lane = lanes_[static_cast<size_t>(queue)];
    return lane.done + lane.tasks.size();
  }
  void run_until(Queue queue, size_t count) {
    Lane& lane = lanes_[static_cast<size_t>(queue)];
    while (lane.done < count) {
      const Task task = std::move(lane.tasks.front());
      lane.tasks.pop_front();
      ++lane.done;
      task();
    }
  }
  std::vector<Task> record(const std::function<void()>& work) {
    std::vector<Task> tasks;
    ensure(recording_ == nullptr, "one recording at a time");
    recording_ = &tasks;
    work();
    recording_ = nullptr;
    return tasks;
  }
  bool is_recording() const { return recording_ != nullptr; }

 private:
  struct Lane {
    std::deque<Task> tasks;
    size_t done = 0;
  };
  Lane lanes_[2];
  std::vector<Task>* recording_ = nullptr;
};

class HostMark final : public Mark {
 public:
  explicit HostMark(HostQueues& queues) : queues_(queues) {}
  void set(Queue queue) override {
    queue_ = queue;
    count_ = queues_.pushed(queue);
  }
  void hold(Queue queue) override {
    queues_.push(queue,
                 [&queues = queues_, of = queue_, count = count_] { queues.run_until(of, count); });
  }
  void wait() override {
    ensure(!queues_.is_recording(), "who records does not wait");
    queues_.run_until(queue_, count_);
  }

 private:
  HostQueues& queues_;
  Queue queue_ = Queue::kWork;
  size_t count_ = 0;
};

class HostInstant final : public Instant {
 public:
  explicit HostInstant(HostQueues& queues) : queues_(queues) {}
  void set() override {
    at_ = std::make_shared<std::optional<TimePoint>>();
    queues_.push(Queue::kWork, [at = at_] { *at = std::chrono::steady_clock::now(); });
  }
  double seconds_since(const Instant& before) const override {
    const auto& first = static_cast<const HostInstant&>(before);
    ensure(at_ && *at_ && first.at_ && *first.at_, "the device has passed what is read");
    return std::chrono::duration<double>(**at_ - **first.at_).count();
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  HostQueues& queues_;
  std::shared_ptr<std::optional<TimePoint>> at_;  // of the newest set; nothing before it is passed
};

class HostRecording final : public Recording {
 public:
  HostRecording(HostQueues& queues, std::vector<HostQueues::Task> tasks)
      : queues_(queues), tasks_(std::move(tasks)) {}
  void run() override {
    for (const auto& task : tasks_) queues_.push(Queue::kWork, task);
  }

 private:
  HostQueues& queues_;
  const std::vector<HostQueues::Task> tasks_;
};

}  // namespace outrigger::nn::cuda::testing
