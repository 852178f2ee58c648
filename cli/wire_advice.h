#pragma once

#include <optional>
#include <string>

#include "cli/wires.h"
#include "training/planner/search.h"

namespace outrigger::cli {

/// What a narrower wire would bring the job whose best plan's step takes so many seconds: a
/// sentence for people. `present`: its wires; `work`: what links take with others, where not as
/// with these. Nothing where little is to gain, or no plan with a stem away would be found.
std::optional<std::string> wire_advice(const training::Situation& in, const Wires& present,
                                       const NarrowedWork& work, double seconds,
                                       const training::Trial& trial);

}  // namespace outrigger::cli
