#include <exception>

#include "common/error.h"
#include "common/log.h"
#include "gpu-server/report/timeline.h"
#include "gpu-server/run.h"

/// How a run ends, and what it leaves behind then.
namespace outrigger::gpu_server {

api::ExitCode Run::stopped() {
  reporter_.state("Stopping");
  trainer_.gather_state();
  save_checkpoint();
  tell_of_the_end();
  write_trace();
  log::info("stopped after step {}; go on with --resume", trainer_.counters().step);
  feed_.say_farewell({true, "the server was asked to stop"});
  return api::ExitCode::kStopped;
}

api::ExitCode Run::complete() {
  tell_of_the_end();
  trainer_.gather_state();
  save_checkpoint();
  files_.write_weights(trainer_.state());
  write_trace();
  reporter_.state("Complete");
  feed_.say_farewell({false, "the job is done"});
  return api::ExitCode::kDone;
}

// A picture for people: the run is what it is without one.
void Run::write_trace() const {
  try {
    trace_.write(directory_ / trace_name(launch_.rank));
  } catch (const std::exception& error) {
    log::warning("there is no trace of this run: {}", error.what());
  }
}

void Run::tell_of_the_end() {
  if (ready_) {
    const uint64_t last = trainer_.counters().step - 1;
    if (planning_) reporter_.desired_workers(planning_->desired_workers());
    reporter_.workers(last, measured_.workers, measured_.local);
    reporter_.layers(last, graph_, trainer_.layer_seconds(), measured_.workers);
  }
  reporter_.finish();
}

}  // namespace outrigger::gpu_server
