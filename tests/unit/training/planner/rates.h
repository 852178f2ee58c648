#pragma once

#include "training/planner/costs.h"

/// A machine of each side that the planner's tests reckon with.
namespace outrigger::training {

constexpr ServerRates kServer{.cores = 2, .decode = 0.1, .shared = true};
constexpr WorkerRates kWorker{
    .stem_speed = 1, .decode = 0.05, .bytes_per_second = 1e9, .latency = 0.0005};

}  // namespace outrigger::training
