#pragma once

#include <string>
#include <vector>

#include "training/planner/profile.h"
#include "training/planner/search.h"

namespace outrigger::training {

/// What other sizes of batch and micro-batch would bring, and whether the present ones leave too
/// little to level: sentences for people, none where nothing is to gain. Other sizes are reckoned
/// from this profile, as if a sample's time did not depend on them, and only named where memory
/// holds a plan for them. `best`: the plan that is best with the present sizes.
std::vector<std::string> batch_advice(const Profile& profile, const ServerRates& server,
                                      std::span<const WorkerRates> workers, const Candidate& best);

}  // namespace outrigger::training
