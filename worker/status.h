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
  WorkerPages(const api::Launch& launch, int cores);

  SessionCounters& counters() { return counters_; }
  void joined(bool joined) { joined_ = joined; }

 private:
  std::string status() const;

  const int cores_;
  telemetry::Metrics metrics_;
  SessionCounters counters_{metrics_};
  std::atomic<bool> joined_{false};
  std::unique_ptr<telemetry::StatusServer> server_;
};

}  // namespace outrigger::worker
