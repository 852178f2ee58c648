#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "feed/stall.h"
#include "nn/cuda/backend.h"
#include "telemetry/metrics.h"
#include "training/trainer.h"

namespace outrigger::gpu_server {

/// What the device itself tells of steps, as metrics: how long it was at what, and what its memory
/// is taken for.
class GpuPhases {
 public:
  /// `metrics` must outlive this; `memory` tells what is taken now.
  GpuPhases(telemetry::Metrics& metrics, std::function<std::vector<nn::cuda::MemoryUse>()> memory);

  /// A step whose report has the device's times.
  void step(const training::StepReport& report);

 private:
  void tell_memory();

  telemetry::Metrics& metrics_;
  const std::function<std::vector<nn::cuda::MemoryUse>()> memory_;
  telemetry::Counter& input_;
  telemetry::Counter& forward_;
  telemetry::Counter& backward_;
  telemetry::Counter& optimizer_;
  telemetry::Counter& idle_;
  uint64_t steps_ = 0;
};

/// Waits of the host as waits of the device: what the trainer waited for while the device was at
/// work cost nothing. `waited`: how long the device stood still in the step, in seconds. Causes
/// keep their parts; pure.
feed::StallTimes hold_to(const feed::StallTimes& stalls, double waited);

/// How long the device stood still in a step, in seconds: its wall time less its work.
double stood_still(const training::StepReport& report);

/// The report with waits held to that, input and gradients alike.
training::StepReport as_the_device_waited(training::StepReport report);

}  // namespace outrigger::gpu_server
