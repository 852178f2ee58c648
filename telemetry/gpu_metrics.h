#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "common/clock.h"
#include "telemetry/metrics.h"
#include "telemetry/nvml.h"

namespace outrigger::telemetry {

/// One GPU as gauges of this process, read every so often by a thread of its own: asking a driver
/// takes milliseconds, which neither a step nor a scrape should wait for.
class GpuMetrics {
 public:
  /// Sets the gauges once before it returns. `metrics` must outlive this.
  GpuMetrics(Metrics& metrics, std::unique_ptr<Nvml> nvml, std::string bus_id, Duration every);

 private:
  void read();
  void loop(const std::stop_token& stop);

  Metrics& metrics_;
  const std::unique_ptr<Nvml> nvml_;
  const std::string bus_id_;
  const Duration every_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace outrigger::telemetry
