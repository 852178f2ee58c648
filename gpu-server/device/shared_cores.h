#pragma once

#include "common/processor_clock.h"
#include "gpu-server/links/server_feed.h"
#include "training/trainer/trainer.h"

namespace outrigger::gpu_server {

/// What the device takes where the server's own worker runs on the same cores: by the clock, each
/// takes its own time and what the other had of the cores meanwhile.
class SharedCores {
 public:
  /// `device`: the clock of the trainer's thread, `worker`: of the own worker's. `feed` must
  /// outlive this.
  SharedCores(ProcessorClock device, ProcessorClock worker, ServerFeed& feed)
      : device_(device), worker_(worker), feed_(feed) {}

  /// Call before each step.
  void begin_step() { begin_ = now(); }
  /// Seconds that the device would have worked in the step that is over now, without the worker.
  double busy_alone(const training::StepReport& report) const;

 private:
  struct Times {
    Duration device{0};
    Duration worker{0};
    Duration worker_in_waits{0};  // of that, while the device waited for the feed
  };
  Times now() const { return {device_.now(), worker_.now(), feed_.own_work_in_waits()}; }

  const ProcessorClock device_;
  const ProcessorClock worker_;
  ServerFeed& feed_;
  Times begin_;
};

/// Seconds of a step in which the device worked.
double busy_seconds(const training::StepReport& report);

/// Of `busy` seconds by the clock what is left without the worker, whose thread had `worker` of
/// them on processors, and the device's `device`: less than that it did not work.
double busy_without(double busy, double device, double worker);

}  // namespace outrigger::gpu_server
