#pragma once

#include <cstddef>
#include <vector>

#include "training/planner/model/costs.h"

/// Which ranks and machines count as the same.
namespace outrigger::training {

/// By how much of it a rate wavers.
constexpr double kWavers = 0.2;

/// Whether no rate differs by more than such a part. The order of workers counts.
bool alike(const RankRates& one, const RankRates& other, double part = kWavers);

/// Likewise of all ranks, in order; of more than eight workers one in eight may differ.
bool are_alike(const std::vector<RankRates>& before, const std::vector<RankRates>& now,
               double part = kWavers);

/// Of all ranks.
size_t workers_of(const std::vector<RankRates>& ranks);

/// Of ranks that are alike, whatever the order of their workers, one does for all: with the least
/// memory of any.
std::vector<RankRates> unlike(const std::vector<RankRates>& ranks);

}  // namespace outrigger::training
