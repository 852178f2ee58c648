#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "training/planner/alike.h"
#include "training/planner/model/costs.h"

/// What people are told of plans, and of why they change.
namespace outrigger::training {

/// As people call it: "cut pool1, 4 of 8 stems away, 1 of 4 inputs made by the server itself".
std::string describe(const JobCosts& job, const Choice& choice);

/// "1 worker", "4 workers".
std::string count_of_workers(size_t count);

/// Of what a step takes, what another plan saves.
struct Gain {
  double is = 0;
  double wanted = 0;  // for a move
};
/// "; that saves 8.2 % where 3.0 % is enough", or only what it saves; empty where that is nothing.
std::string describe_gain(const Gain& gain);

/// What is different now by more than speeds waver: workers that came or left, else the speed that
/// changed the most, as "a worker decodes at 0.48 times its speed", a link's only where work takes
/// another time on it. Empty where none is, or nothing is known of before.
std::string what_changed(const std::vector<RankRates>& before, const std::vector<RankRates>& now,
                         const Likeness& likeness = {});

}  // namespace outrigger::training
