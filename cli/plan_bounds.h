#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "training/planner/search.h"

namespace outrigger::cli {

/// Cuts that have no row because the job's bounds, its share or the memory exclude them: a list of
/// {"cut", "why"}. Without those that another cut's name excludes, or that nobody runs stems for.
nlohmann::json left_out(const training::Situation& in, std::span<const training::Candidate> rows);

/// The plan that a job fixes, of options that do.
training::Choice fixed_choice(const training::PlannerOptions& options);

/// What `cut: Auto` would find, and gain, against the plan of a job that names its cut or its
/// share, whose step takes so many seconds: a sentence for people. Nothing where the job names
/// neither, or little is to gain.
std::optional<std::string> open_plan_advice(const training::Situation& in, double seconds,
                                            const training::Trial& trial);

/// Likewise what would be found, and gained, without a bound on bytes.
std::optional<std::string> traffic_advice(const training::Situation& in, double seconds,
                                          const training::Trial& trial);

/// How many leases a worker with so many cores has room for, and what that leaves of its memory.
void give_room(training::WorkerRates& worker, double cores, const training::Profile& profile);

/// Throws InvalidInput, which names the field, where so many bytes do not hold what such a worker
/// has in hand.
void check_holds_pixels(const std::string& field, double memory,
                        const training::WorkerRates& worker, const training::JobCosts& job);

}  // namespace outrigger::cli
