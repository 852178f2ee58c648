#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "training/planner/model/costs.h"

/// Which ranks and machines count as the same.
namespace outrigger::training {

/// By how much of it a rate wavers.
constexpr double kWavers = 0.2;

/// When rates count as the same.
struct Likeness {
  double part = kWavers;  // of a rate by which others may differ
  /// What a micro-batch moves over a link: links differ by how long that takes, beside how long
  /// decoding does, since one on which it takes next to nothing may be twice as fast for all that
  /// matters. Absent: by their rates.
  std::optional<double> bytes = std::nullopt;
};

/// Whether a link is one on which work takes another time.
bool links_differ(const WorkerRates& before, const WorkerRates& now, const Likeness& likeness);

/// Whether no rate differs. The order of workers counts.
bool alike(const RankRates& one, const RankRates& other, const Likeness& likeness = {});

/// Likewise of all ranks, in order; of more than eight workers one in eight may differ.
bool are_alike(const std::vector<RankRates>& before, const std::vector<RankRates>& now,
               const Likeness& likeness = {});

/// Of all ranks.
size_t workers_of(const std::vector<RankRates>& ranks);

/// Of ranks that are alike, whatever the order of their workers, one does for all: with the least
/// memory of any.
std::vector<RankRates> unlike(const std::vector<RankRates>& ranks);

}  // namespace outrigger::training
