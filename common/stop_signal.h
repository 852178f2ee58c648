#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace outrigger {

/// Turns SIGTERM and SIGINT into a stop request. Make it first in main, before any thread: the
/// signals are blocked in this thread and in all that it starts. A second signal ends the process
/// at once, as by default; the first process of a container with status 128 + its number.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// As if the signal had come.
  void request() { source_.request_stop(); }

 private:
  std::stop_source source_;
  sigset_t former_{};
  std::jthread waiter_;
};

}  // namespace outrigger
