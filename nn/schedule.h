#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace outrigger::nn {

struct ConstantSchedule {};
/// Times `gamma` at each milestone (step numbers, ascending), or, without milestones, after every
/// `every` steps.
struct StepSchedule {
  std::vector<int64_t> milestones = {};
  int64_t every = 0;
  double gamma = 0.1;
};
/// Half a cosine from the base at the end of the warm-up down to `least` at the last step
/// (Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts).
struct CosineSchedule {
  double least = 0;
};

/// How the learning rate follows the steps. A plain value; pure, so that a resumed run has the same
/// rates.
struct Schedule {
  double base = 0.1;
  /// Over its first so many steps the rate rises evenly: step t (from 0) has base * (t + 1) /
  /// warmup_steps.
  int64_t warmup_steps = 0;
  std::variant<ConstantSchedule, StepSchedule, CosineSchedule> kind;
};

/// The rate of step `step` in [0, total_steps). Milestones count from the run's first step, warm-up
/// included.
float learning_rate(const Schedule& schedule, int64_t step, int64_t total_steps);

}  // namespace outrigger::nn
