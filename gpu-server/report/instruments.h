#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "feed/plan.h"
#include "feed/stall.h"
#include "gpu-server/links/server_feed.h"
#include "telemetry/metrics.h"
#include "training/evaluation/evaluation.h"

namespace outrigger::gpu_server {

/// The metrics that a Reporter sets. References live as long as the Metrics that they come from.
struct Instruments {
  explicit Instruments(telemetry::Metrics& metrics);
  /// The gauge that is 1 while this is the plan.
  telemetry::Gauge& plan(const feed::Plan& plan, uint32_t micro_batches) const;
  /// Nothing is shown where nobody knows.
  void desired_workers(std::optional<uint32_t> count) const;
  /// Counts what links carried, and what was given out a second time, from one step to the next.
  void links(const FeedSnapshot& before, const FeedSnapshot& now) const;
  /// Shown from the first evaluation on; what the newest one could not measure is not.
  void evaluation(const training::EvaluationResult& result) const;

  telemetry::Counter& steps;
  telemetry::Counter& samples;
  std::array<telemetry::Counter*, feed::kStallCauses> stalls{};
  telemetry::Counter& busy;
  telemetry::Counter& planning;
  telemetry::Counter& bytes_in;
  telemetry::Counter& bytes_out;
  telemetry::Counter& second_leases;
  telemetry::Gauge& loss;
  telemetry::Gauge& accuracy;
  telemetry::Gauge& workers;
  telemetry::Gauge& desired;
  telemetry::Gauge& rate;
  telemetry::Gauge& work;
  telemetry::Metrics& all;
};

}  // namespace outrigger::gpu_server
