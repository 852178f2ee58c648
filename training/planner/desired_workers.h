#pragma once

#include <cstdint>
#include <span>

#include "training/planner/planner.h"

namespace outrigger::training {

/// Between how many workers, and how much of its time the device may wait.
struct ScaleBounds {
  uint32_t least = 0;
  uint32_t most = 16;
  double target_stall = 0.05;
};

/// How many workers like those that are there (`workers`, at least one) the job can use: the least
/// number with which the best plan keeps the device waiting no more than the target; where none
/// does, the least beyond which nothing gets faster. Deterministic.
uint32_t desired_workers(const JobCosts& job, const PlannerOptions& options,
                         const ServerRates& server, std::span<const WorkerRates> workers,
                         const ScaleBounds& bounds);

}  // namespace outrigger::training
