#pragma once

#include <atomic>
#include <cstdint>

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
  /// Grows with every piece of work; odd while one is under way, even while the worker waits.
  std::atomic<uint64_t> turns{0};
  /// Likewise with the oldest image that is being decoded; 0: none is.
  std::atomic<uint64_t> at_sample{0};
};

/// A piece of work, for whoever watches that it ends.
class Turn {
 public:
  explicit Turn(std::atomic<uint64_t>& turns) : turns_(turns) { ++turns_; }
  ~Turn() { ++turns_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<uint64_t>& turns_;
};

}  // namespace outrigger::worker
