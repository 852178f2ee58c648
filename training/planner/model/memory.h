#pragma once

#include <span>
#include <string>
#include <vector>

#include "feed/stem_memory.h"
#include "training/planner/model/costs.h"

namespace outrigger::training {

/// What something takes, in bytes.
struct MemoryPart {
  std::string what;
  double bytes = 0;
};
double total(std::span<const MemoryPart> parts);

/// What a plan takes in the server's process beyond the program and its listing of the data: an
/// upper bound, with the local worker's stems where some stay. `leases`: those that remote workers
/// have room for.
std::vector<MemoryPart> server_memory(const JobCosts& job, const Choice& choice, size_t leases);
/// Likewise in the process of one of `workers` equal workers, each with room for so many `leases`.
std::vector<MemoryPart> worker_memory(const JobCosts& job, const Choice& choice, size_t workers,
                                      uint32_t leases = kLeasesInHand);

/// The same, by what does not depend on the share.
feed::StemMemory stem_memory(const JobCosts& job, const CutCosts& cut);

/// How much memory a worker must have to be given stems of the plan: those that have it share them
/// out, the others make pixels only. 0 where no stem is away or no worker's memory is known,
/// infinite where nobody has it.
double memory_for_stems(const JobCosts& job, std::span<const WorkerRates> workers,
                        const Choice& choice);

/// Whether a worker is given stems that need so much memory.
inline bool is_given_stems(const WorkerRates& worker, double needs) {
  return worker.stems && worker.memory >= needs;
}

/// Why the plan does not fit into the memory that is there; empty: it fits.
std::string misfit(const JobCosts& job, const ServerRates& server,
                   std::span<const WorkerRates> workers, const Choice& choice);

}  // namespace outrigger::training
