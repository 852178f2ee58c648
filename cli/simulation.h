#pragma once

#include <nlohmann/json.hpp>

#include "api/cluster.h"
#include "training/planner/model/profile.h"
#include "training/simulator/cluster.h"

namespace outrigger::cli {

/// The described machines in the simulator's terms; of a job of several ranks those of one: such a
/// server, and of the workers the part of the rank that has the fewest.
training::SimulatedCluster simulated_cluster(const api::Cluster& cluster,
                                             const training::Profile& profile);

/// Runs the job on the described cluster in virtual time and tells what came of it: rate, step
/// times, stalls, moves, who made how much, and what limits it. Rate and costs are of all ranks,
/// each with such a server.
nlohmann::json simulate_job(const api::Cluster& cluster, const training::Profile& profile);
/// The same for people, to standard output.
void print_simulation(const nlohmann::json& told);

}  // namespace outrigger::cli
