#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "common/child_process.h"

namespace outrigger::cli {

/// A process of a local run that is started again, with back-off, when it fails or cannot be
/// started. One that ended well stays ended. For one thread, the one that ends last: children end
/// with the thread that started them.
class KeptProcess {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `name` is for warnings, "worker 0, whose log is …"; `start` may throw IoError.
  KeptProcess(std::string name, std::function<ChildProcess()> start)
      : name_(std::move(name)), start_(std::move(start)) {}

  /// Starts it where that is due; whether it was found to have failed.
  bool keep(Time now);
  void terminate();

 private:
  void back_off(Time now);

  std::string name_;
  std::function<ChildProcess()> start_;
  std::optional<ChildProcess> process_;
  Time not_before_;
  std::chrono::milliseconds wait_{500};
};

}  // namespace outrigger::cli
