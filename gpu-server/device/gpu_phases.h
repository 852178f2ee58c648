#pragma once

#include <array>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "feed/stall.h"
#include "nn/cuda/backend.h"
#include "telemetry/metrics.h"
#include "training/trainer/trainer.h"

namespace outrigger::gpu_server {

/// Tells what memory has now, the most first.
using TellMemory = std::function<std::vector<nn::cuda::MemoryUse>()>;

/// What the device itself tells of steps, as metrics: how long it was at what, what its memory is
/// taken for, and which layers keep most of it for the backward pass.
class GpuPhases {
 public:
  /// `metrics` must outlive this; `memory`: by what it is taken for; `kept`: by layers.
  GpuPhases(telemetry::Metrics& metrics, TellMemory memory, TellMemory kept);

  /// A step whose report has the device's times.
  void step(const training::StepReport& report);

 private:
  void tell_memory();
  void tell_kept();

  telemetry::Metrics& metrics_;
  const TellMemory memory_, kept_;
  telemetry::Counter& input_;
  telemetry::Counter& forward_;
  telemetry::Counter& backward_;
  telemetry::Counter& optimizer_;
  telemetry::Counter& idle_;
  std::set<std::string> kept_layers_;  // that metrics have
  uint64_t steps_ = 0;
};

/// Waits of the host as waits of the device: what the trainer waited for while the device was at
/// work cost nothing. `waited`: how long the device stood still in the step, in seconds. Causes
/// keep their parts; pure.
feed::StallTimes hold_to(const feed::StallTimes& stalls, double waited);

/// How long the device stood still in a step, in seconds: its wall time less its work.
double stood_still(const training::StepReport& report);

/// The report with waits held to that: input and gradients alike, other ranks to what they leave.
training::StepReport as_the_device_waited(training::StepReport report);

}  // namespace outrigger::gpu_server
