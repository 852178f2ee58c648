#include "training/planner/alike.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace outrigger::training {
namespace {

/// By more than a part of them.
class Differ {
 public:
  explicit Differ(const Likeness& likeness) : likeness_(likeness) {}
  bool operator()(double before, double now) const {
    return std::abs(now - before) > likeness_.part * std::max(before, now);
  }
  bool operator()(const WorkerRates& before, const WorkerRates& now) const {
    return (*this)(before.stem_speed, now.stem_speed) || (*this)(before.decode, now.decode) ||
           links_differ(before, now, likeness_) || (*this)(before.memory, now.memory) ||
           before.stems != now.stems;
  }

 private:
  const Likeness likeness_;
};

bool differ(const ServerRates& before, const ServerRates& now, const Differ& differs) {
  return differs(before.cores, now.cores) || differs(before.decode, now.decode);
}

double longest_latency(const RankRates& rank) {
  double longest = 0;
  for (const WorkerRates& worker : rank.workers) longest = std::max(longest, worker.latency);
  return longest;
}

}  // namespace

bool links_differ(const WorkerRates& before, const WorkerRates& now, const Likeness& likeness) {
  if (!likeness.bytes) return Differ(likeness)(before.bytes_per_second, now.bytes_per_second);
  const double took = *likeness.bytes / before.bytes_per_second;
  const double takes = *likeness.bytes / now.bytes_per_second;
  const double of = std::max({took, takes, before.decode, now.decode});
  return std::abs(takes - took) > likeness.part * of;
}

bool alike(const RankRates& one, const RankRates& other, const Likeness& likeness) {
  const Differ differs(likeness);
  const auto same = [&](const WorkerRates& before, const WorkerRates& now) {
    return !differs(before, now);
  };
  return !differ(one.server, other.server, differs) &&
         std::ranges::equal(one.workers, other.workers, same);
}

// Of many that each waver now and then some always do.
bool are_alike(const std::vector<RankRates>& before, const std::vector<RankRates>& now,
               const Likeness& likeness) {
  constexpr size_t kSome = 8;
  const Differ differs(likeness);
  return std::ranges::equal(before, now, [&](const RankRates& one, const RankRates& other) {
    if (differ(one.server, other.server, differs)) return false;
    if (one.workers.size() != other.workers.size()) return false;
    size_t others = 0;
    for (size_t i = 0; i < one.workers.size(); ++i)
      others += differs(one.workers[i], other.workers[i]) ? 1 : 0;
    return others <= (one.workers.size() - std::min<size_t>(1, one.workers.size())) / kSome;
  });
}

size_t workers_of(const std::vector<RankRates>& ranks) {
  size_t sum = 0;
  for (const RankRates& rank : ranks) sum += rank.workers.size();
  return sum;
}

std::vector<RankRates> unlike(const std::vector<RankRates>& ranks) {
  constexpr double kSoon = 1e-3;  // seconds of latency, which nobody minds
  std::vector<RankRates> kept;
  std::vector<RankRates> sorted;
  for (const RankRates& rank : ranks) {
    RankRates by_speed = rank;
    std::ranges::sort(by_speed.workers, {}, &WorkerRates::stem_speed);
    const auto like = std::ranges::find_if(sorted, [&](const RankRates& one) {
      return alike(one, by_speed) &&
             std::abs(longest_latency(one) - longest_latency(by_speed)) < kSoon;
    });
    if (like == sorted.end()) {
      kept.push_back(rank);
      sorted.push_back(std::move(by_speed));
      continue;
    }
    RankRates& first = kept[static_cast<size_t>(like - sorted.begin())];
    first.server.memory = std::min(first.server.memory, rank.server.memory);
    std::vector<WorkerRates*> workers;
    for (WorkerRates& worker : first.workers) workers.push_back(&worker);
    std::ranges::sort(workers, {}, &WorkerRates::stem_speed);
    for (size_t i = 0; i < workers.size(); ++i)
      workers[i]->memory = std::min(workers[i]->memory, by_speed.workers[i].memory);
  }
  return kept;
}

}  // namespace outrigger::training
