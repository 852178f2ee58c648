#include "nn/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace outrigger::nn {
namespace {

double decayed(const StepSchedule& schedule, double base, int64_t step) {
  int64_t drops = 0;
  if (!schedule.milestones.empty()) {
    drops = std::count_if(schedule.milestones.begin(), schedule.milestones.end(),
                          [&](int64_t milestone) { return step >= milestone; });
  } else if (schedule.every > 0) {
    drops = step / schedule.every;
  }
  return base * std::pow(schedule.gamma, static_cast<double>(drops));
}

}  // namespace

float learning_rate(const Schedule& schedule, int64_t step, int64_t total_steps) {
  const double base = schedule.base;
  if (step < schedule.warmup_steps) {
    return static_cast<float>(base * static_cast<double>(step + 1) /
                              static_cast<double>(schedule.warmup_steps));
  }
  if (const auto* steps = std::get_if<StepSchedule>(&schedule.kind)) {
    return static_cast<float>(decayed(*steps, base, step));
  }
  if (const auto* cosine = std::get_if<CosineSchedule>(&schedule.kind)) {
    const auto length =
        static_cast<double>(std::max<int64_t>(total_steps - schedule.warmup_steps - 1, 1));
    const double done = std::min(static_cast<double>(step - schedule.warmup_steps) / length, 1.0);
    return static_cast<float>(cosine->least + (base - cosine->least) * 0.5 *
                                                  (1.0 + std::cos(std::numbers::pi * done)));
  }
  return static_cast<float>(base);
}

}  // namespace outrigger::nn
