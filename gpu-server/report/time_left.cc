#include "gpu-server/report/time_left.h"

#include <algorithm>
#include <cmath>

namespace outrigger::gpu_server {

TimeLeft::TimeLeft(const RunSize& size, uint64_t steps_done)
    : total_steps_(size.total_steps),
      evaluations_{.every = size.steps_between_evaluations, .last = steps_done},
      checkpoints_{.every = size.steps_between_checkpoints, .last = steps_done},
      steps_done_(steps_done) {}

void TimeLeft::step(uint64_t steps_done, double seconds) {
  steps_done_ = steps_done;
  step_seconds_ = seconds;
}

void TimeLeft::evaluated(uint64_t steps_done, Duration stood_still) {
  evaluations_.last = steps_done;
  evaluations_.took = stood_still;
}

void TimeLeft::saved(uint64_t steps_done, Duration stood_still) {
  checkpoints_.last = steps_done;
  checkpoints_.took = stood_still;
}

Duration TimeLeft::still_due(const Pause& pause) const {
  if (pause.every <= 0 || pause.last >= total_steps_) return Duration{0};
  const auto by = [&](uint64_t step) {
    return std::floor(static_cast<double>(step) / pause.every);
  };
  const double before_the_last = by(total_steps_ - 1) - by(pause.last);
  return pause.took * static_cast<int64_t>(before_the_last + 1);
}

std::optional<Duration> TimeLeft::now() const {
  if (!step_seconds_) return std::nullopt;
  const uint64_t steps = total_steps_ - std::min(steps_done_, total_steps_);
  const std::chrono::duration<double> stepping(*step_seconds_ * static_cast<double>(steps));
  return std::chrono::duration_cast<Duration>(stepping) + still_due(evaluations_) +
         still_due(checkpoints_);
}

}  // namespace outrigger::gpu_server
