#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "api/launch.h"
#include "telemetry/metrics.h"
#include "telemetry/status_server.h"
#include "worker/counters.h"

namespace outrigger::worker {

/// A worker's health, metrics and status pages. A worker whose status port is taken works all the
/// same and says so.
class WorkerPages {
 public:
  explicit WorkerPages(const api::Launch& launch);

  SessionCounters& counters() { return counters_; }
  void joined(bool joined) { joined_ = joined; }
  /// Threads that it works with.
  void cores(int cores) { cores_ = cores; }

 private:
  std::string status() const;

  std::atomic<int> cores_{0};
  telemetry::Metrics metrics_;
  SessionCounters counters_{metrics_};
  std::atomic<bool> joined_{false};
  std::unique_ptr<telemetry::StatusServer> server_;
};

}  // namespace outrigger::worker
