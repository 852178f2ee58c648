#pragma once

#include <optional>
#include <string>

#include "feed/plan.h"
#include "training/planner/search.h"

namespace outrigger::cli {

/// What a narrower wire would bring the job whose best plan's step takes so many seconds: a
/// sentence for people. `present`: its wires. Nothing where little is to gain, or no plan with a
/// stem away would be found.
std::optional<std::string> wire_advice(const training::Situation& in, const feed::Plan& present,
                                       double seconds, const training::Trial& trial);

}  // namespace outrigger::cli
