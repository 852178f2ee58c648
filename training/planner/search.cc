#include "training/planner/search.h"

#include <algorithm>
#include <cmath>

#include "training/planner/contest.h"
#include "training/planner/model/memory.h"

namespace outrigger::training {
namespace {

double server_percent(const JobCosts& job, const Choice& choice) {
  const double away = 100 - job.cuts[choice.cut].server_percent;
  return 100 - away * choice.away / job.micro_batches;
}

/// With what slower ranks take for the same.
Prediction with_others(const Situation& in, const Choice& choice, Prediction slowest) {
  for (const RankRates& rank : in.others) {
    const Prediction its = predict(in.job, rank.server, rank.workers, choice);
    if (its.seconds > slowest.seconds) slowest = its;
  }
  return slowest;
}

/// A cut and a share with the local input that the model thinks best for all, of those that it
/// thinks best for one rank.
Candidate with_local_input(const Situation& in, Choice choice) {
  if (in.options.fixes_plan()) return {choice, predict(in, choice)};
  const LocalInput first = best_local_input(in.job, in.server, in.workers, choice);
  choice.local = first.local;
  Candidate best{choice, with_others(in, choice, first.prediction)};
  for (const RankRates& rank : in.others) {
    const LocalInput its = best_local_input(in.job, rank.server, rank.workers, choice);
    if (its.local == best.choice.local) continue;
    choice.local = its.local;
    const Prediction told = predict(in, choice);
    if (told.seconds < best.prediction.seconds) best = {choice, told};
  }
  return best;
}

/// Every share of every cut, with local input where no more may pass than the options say.
std::vector<Candidate> all_shares(const Situation& in) {
  std::vector<Candidate> all;
  const auto limited = [&](ServerRates server) {
    server.bytes_per_second = std::min(server.bytes_per_second, in.options.most_bytes_per_second);
    return server;
  };
  std::vector<RankRates> others(in.others.begin(), in.others.end());
  for (RankRates& rank : others) rank.server = limited(rank.server);
  const ServerRates server = limited(in.server);
  const Situation within{in.job, in.options, server, in.workers, others};
  for (size_t cut = 0; cut < in.job.cuts.size(); ++cut) {
    const uint32_t most = cut == 0 ? 0 : in.job.micro_batches;
    for (uint32_t away = cut == 0 ? 0 : 1; away <= most; ++away) {
      if (!allowed(in, {cut, away})) continue;
      const Candidate one = with_local_input(within, {cut, away});
      if (std::isfinite(one.prediction.seconds)) all.push_back(one);
    }
  }
  return all;
}

bool is_bounded(const Situation& in) { return std::isfinite(in.options.most_bytes_per_second); }

/// The best of each of a few cuts, the best of all in front.
std::vector<Choice> best_of_cuts(const std::vector<Candidate>& sorted) {
  constexpr size_t kCuts = 4;
  std::vector<Choice> best;
  for (const Candidate& one : sorted) {
    const auto seen = std::ranges::find(best, one.choice.cut, &Choice::cut) != best.end();
    if (best.size() < kCuts && !seen) best.push_back(one.choice);
  }
  return best;
}

/// Those first, then whatever is next. Where a bound holds what moves, of these cuts also what
/// moves the least: the model does not know the bound.
void enter_all(Contest& contest, std::vector<Candidate> all, size_t most, const Situation& in) {
  std::ranges::stable_sort(all, {}, [](const Candidate& one) { return one.prediction.seconds; });
  const std::vector<Choice> best = best_of_cuts(all);
  for (const Choice& one : best) contest.enter(one);
  if (is_bounded(in)) {
    for (const Choice& one : best)
      if (one.cut > 0) contest.enter({one.cut, 1, in.job.micro_batches - 1});
  }
  for (size_t i = 0; i < std::min(most, all.size()); ++i) contest.enter(all[i].choice);
}

/// What the model ranks too low: no split with the local input that it thinks best, and at its best
/// cut all stems away and the share half-way to that; there the server makes what would come late,
/// and no layout of a step knows of that. A thorough trial is worth shares that leave the server
/// one or two micro-batches for each end of the step, also with no pixels on a link. Where links
/// are the limit, half of the stems away and none either: whose links wait for what, no layout
/// knows.
void enter_extremes(Contest& contest, const std::vector<Candidate>& all, uint32_t micro_batches,
                    bool thorough) {
  const Candidate* best = nullptr;
  for (const Candidate& one : all) {
    if (one.choice.cut == 0) {
      contest.enter(one.choice);
    } else if (best == nullptr || one.prediction.seconds < best->prediction.seconds) {
      best = &one;
    }
  }
  if (best == nullptr) return;
  const auto of_cut = [best](const Candidate& one) { return one.choice.cut == best->choice.cut; };
  const uint32_t most = std::find_if(all.rbegin(), all.rend(), of_cut)->choice.away;
  const uint32_t between = (best->choice.away + most + 1) / 2;
  for (const Candidate& one : all) {
    const uint32_t away = one.choice.away;
    const uint32_t here = micro_batches - away;
    const bool for_each_end = thorough && (here == 2 || here == 4);
    if (!of_cut(one)) continue;
    if (away == most || away == between || for_each_end) contest.enter(one.choice);
    if (for_each_end) contest.enter({one.choice.cut, away, here});
  }
  if (best->prediction.bound != Bound::kLink) return;
  const uint32_t half = micro_batches / 2;
  contest.enter({best->choice.cut, half, micro_batches - half});
}

/// All that a search tries.
Contest contest(const Situation& situation, const Choice& present, const Trial& trial,
                double to_plain) {
  Contest contest(situation, present, trial, to_plain);
  contest.enter(present);
  contest.enter({});  // no split at all: nothing may be worse than that
  contest.enter_keeping_its_own({});
  if (is_bounded(situation))
    contest.enter({.local = situation.job.micro_batches});  // and nothing moves less
  std::vector<Candidate> all = all_shares(situation);
  enter_extremes(contest, all, situation.job.micro_batches, trial.thorough);
  enter_all(contest, std::move(all), trial.most / 4, situation);
  if (trial.thorough) contest.enter_all_local();
  contest.climb();
  return contest;
}

}  // namespace

bool allowed(const Situation& in, const Choice& choice) {
  const bool unsplit = choice.cut == 0;
  if (choice.cut >= in.job.cuts.size() || unsplit != (choice.away == 0)) return false;
  if (choice.away + choice.local > in.job.micro_batches) return false;
  if (choice.local > 0 && in.options.fixes_plan()) return false;
  if (!unsplit && in.options.cut && *in.options.cut != choice.cut) return false;
  if (!unsplit && in.options.away && *in.options.away != choice.away) return false;
  const auto fits = [&](const ServerRates& server, std::span<const WorkerRates> workers) {
    return misfit(in.job, server, workers, choice).empty();
  };
  return server_percent(in.job, choice) >= in.options.least_server_percent &&
         fits(in.server, in.workers) && std::ranges::all_of(in.others, [&](const RankRates& rank) {
           return fits(rank.server, rank.workers);
         });
}

Prediction predict(const Situation& in, const Choice& choice) {
  return with_others(in, choice, predict(in.job, in.server, in.workers, choice));
}

Traffic traffic(const JobCosts& job, const Choice& choice, std::span<const WorkerRates> workers) {
  const CutCosts& cut = job.cuts[choice.cut];
  const double pixels = job.pixels * (job.micro_batches - choice.away - choice.local);
  Traffic bytes{.to_server = pixels + choice.away * cut.activations};
  if (choice.away == 0 || !cut.trains) return bytes;
  // Every stem sends its weights' gradients; whoever has one in a step gets the weights.
  const double needs = memory_for_stems(job, workers, choice);
  const auto able = std::ranges::count_if(
      workers, [needs](const WorkerRates& worker) { return is_given_stems(worker, needs); });
  const auto with_stems = std::min<int64_t>(able, choice.away);
  bytes.to_server += choice.away * cut.weights;
  bytes.to_workers = choice.away * cut.gradients + static_cast<double>(with_stems) * cut.weights;
  return bytes;
}

bool holds(const Situation& in, const Choice& choice, double seconds) {
  if (!allowed(in, choice) || !std::isfinite(seconds)) return false;
  double bytes = traffic(in.job, choice, in.workers).fuller();
  for (const RankRates& rank : in.others)
    bytes = std::max(bytes, traffic(in.job, choice, rank.workers).fuller());
  return bytes <= in.options.most_bytes_per_second * seconds;
}

std::vector<Candidate> candidates(const JobCosts& job, const PlannerOptions& options,
                                  const ServerRates& server, std::span<const WorkerRates> workers) {
  std::vector<Candidate> best;
  for (const Candidate& one : all_shares({job, options, server, workers})) {
    if (best.empty() || best.back().choice.cut != one.choice.cut) {
      best.push_back(one);
    } else if (one.prediction.seconds < best.back().prediction.seconds) {
      best.back() = one;
    }
  }
  return best;
}

Trial by_model() {
  return {[](const Situation& in, const Choice& choice) { return predict(in, choice).seconds; }};
}

std::optional<Candidate> search(const Situation& situation, const Choice& present,
                                const Trial& trial, double to_plain) {
  return contest(situation, present, trial, to_plain).winner();
}

std::vector<Candidate> best_plans(const Situation& situation, Trial trial, size_t count) {
  trial.within = nullptr;  // those that are not the best are told of as well
  return contest(situation, {}, trial, 1).best(count);
}

TriedCandidates tried_candidates(const Situation& in, const Trial& trial) {
  TriedCandidates tried{.rows = candidates(in.job, in.options, in.server, in.workers)};
  const auto found = search(in, {}, trial);
  for (Candidate& row : tried.rows) {
    if (found && found->choice.cut == row.choice.cut) {
      row = *found;
    } else {
      row.prediction.seconds = trial.seconds(in, row.choice);
    }
  }
  std::erase_if(tried.rows, [&](const Candidate& row) {
    return !holds(in, row.choice, row.prediction.seconds);
  });
  if (!found) return tried;
  const auto its = [](const Candidate& row) { return row.choice.cut; };
  const auto row = std::ranges::find(tried.rows, found->choice.cut, its);
  if (row == tried.rows.end()) {
    tried.found = tried.rows.size();
    tried.rows.push_back(*found);
  } else {
    tried.found = static_cast<size_t>(row - tried.rows.begin());
  }
  return tried;
}

}  // namespace outrigger::training
