#pragma once

#include <span>
#include <string>
#include <vector>

#include "training/planner/model/profile.h"

namespace outrigger::cli {

/// Where a pass over a micro-batch has fewer blocks than the machine that runs it has cores: for
/// the server whose device these are, and for workers with stems. Sentences for people.
std::vector<std::string> idle_cores_advice(const training::Profile& profile,
                                           const training::ServerRates& server,
                                           std::span<const training::WorkerRates> workers,
                                           const training::Choice& choice);

}  // namespace outrigger::cli
