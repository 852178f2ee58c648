#pragma once

#include "telemetry/metrics.h"

namespace outrigger::worker {

/// What a worker has done so far: metrics of its process, read by its status page too. References
/// into the Metrics given, which must outlive this. Thread-safe.
struct SessionCounters {
  explicit SessionCounters(telemetry::Metrics& metrics);

  telemetry::Counter& micro_batches;
  telemetry::Counter& stem_gradients;
  telemetry::Counter& scored_batches;
  telemetry::Counter& broken_samples;
  telemetry::Counter& failed_reads;
  telemetry::Counter& busy_seconds;
  telemetry::Gauge& unfinished;
};

}  // namespace outrigger::worker
