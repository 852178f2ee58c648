#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/planner/model/profile.h"
#include "training/planner/search.h"

namespace outrigger::training {

/// How many ranks a step's batch is shared out over: the costs are of one.
uint32_t ranks_of(const Profile& profile);

/// What other sizes of batch and micro-batch would bring, and whether the present ones leave too
/// little to level: sentences for people, none where nothing is to gain. Other sizes are reckoned
/// from this profile, as if a sample's time did not depend on them, and only named where memory
/// holds a plan for them. `server` and `workers` are of one rank. `best`: the plan that is best
/// with the present sizes; where the job fixes one, other sizes have that too.
std::vector<std::string> batch_advice(const Profile& profile, const ServerRates& server,
                                      std::span<const WorkerRates> workers, const Candidate& best);

/// With so few micro-batches a step that a trained cut leaves nothing to level: a sentence for
/// people. Nothing where there are enough.
std::optional<std::string> levelling_advice(uint32_t micro_batches);

/// Behind the message that not even cut Input fits into the server's memory, with micro-batches of
/// so many samples: "; microBatchSize: 4 would fit", or that none does.
std::string what_would_fit(const JobCosts& job, uint32_t micro_batch, const ServerRates& server,
                           std::span<const WorkerRates> workers);

}  // namespace outrigger::training
