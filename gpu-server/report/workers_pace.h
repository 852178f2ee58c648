#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "gpu-server/planning/worker_book.h"

namespace outrigger::gpu_server {

/// When metrics.jsonl gets a line about workers: often in a run's first two minutes, where one
/// looks at them, then every minute, and when one joins or leaves. It is a long line, and a run may
/// last for weeks. Not thread-safe.
class WorkersPace {
 public:
  /// Whether a line is due; it is taken to be written then.
  bool due(TimePoint now, std::span<const WorkerMeasures> workers);

 private:
  std::optional<TimePoint> begun_;
  TimePoint told_{};
  std::vector<std::string> names_;  // in that line
};

}  // namespace outrigger::gpu_server
