#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"
#include "gpu-server/job/job_plan.h"

namespace outrigger::gpu_server {

/// How long a run still takes: its steps, and the evaluations and checkpoints for which training
/// stands still, each as long as the newest one. Not thread-safe.
class TimeLeft {
 public:
  /// Of a run that begins behind so many steps.
  TimeLeft(const RunSize& size, uint64_t steps_done);

  /// So many steps are done, and one takes so long.
  void step(uint64_t steps_done, double seconds);
  /// Training stood still so long, behind so many steps or, made beside training, of their weights.
  void evaluated(uint64_t steps_done, Duration stood_still);
  void saved(uint64_t steps_done, Duration stood_still);
  /// Nothing before the first step.
  std::optional<Duration> now() const;

 private:
  /// What is done every so many steps, and behind the last one.
  struct Pause {
    double every = 0;  // 0: never
    uint64_t last = 0;
    Duration took{0};
  };
  Duration still_due(const Pause& pause) const;

  const uint64_t total_steps_;
  Pause evaluations_;
  Pause checkpoints_;
  uint64_t steps_done_;
  std::optional<double> step_seconds_;
};

}  // namespace outrigger::gpu_server
