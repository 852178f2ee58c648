#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "training/planner/model/costs.h"
#include "training/planner/model/step_model.h"

/// Which plans there are, and which of them is best.
namespace outrigger::training {

struct PlannerOptions {
  /// The user's, a place in JobCosts::cuts, behind them where they lack it; absent: any.
  std::optional<size_t> cut;
  std::optional<uint32_t> away;     // the user's share, as micro-batches; absent: any
  double least_server_percent = 0;  // of the multiply-adds
  /// Between the server and all its workers, in each direction.
  double most_bytes_per_second = std::numeric_limits<double>::infinity();
  double margin = 0.03;   // a better plan must be so much better
  uint64_t dwell = 10;    // steps between two moves, but right after a sudden change
  uint64_t memory = 200;  // steps for which a measured step time counts
  /// Whether nothing is left to find: such a run has no planner, and keeps no input local.
  bool fixes_plan() const { return cut && (*cut == 0 || away); }
};

/// What is planned for. Ranks take the same plan, and a step is over when the slowest has done its
/// part.
struct Situation {
  const JobCosts& job;
  const PlannerOptions& options;
  const ServerRates& server;
  std::span<const WorkerRates> workers;
  std::span<const RankRates> others = {};
};

/// Whether the options allow a plan, and memory holds it.
bool allowed(const Situation& in, const Choice& choice);

/// What the step model says of the rank that takes the longest.
Prediction predict(const Situation& in, const Choice& choice);

/// A plan and what the step model expects of it.
struct Candidate {
  Choice choice;
  Prediction prediction;
};

/// Tells the seconds of a step under a plan; infinite where it cannot be. A search asks it at most
/// so many times.
struct Trial {
  using Seconds = std::function<double(const Situation&, const Choice&)>;
  Seconds seconds;
  size_t most = 64;
  /// Decides between the two best where plans are close, as they count (contest.h: exposure());
  /// absent: the shortest step has won.
  Seconds longer = nullptr;
  /// Whether it is as well to be believed where plans come close that differ much: such are tried
  /// in the place of some that the step model likes.
  bool thorough = false;
  /// As `seconds`, but what is sure to take longer than `enough` may end early, with any number
  /// above that; absent: `seconds` is asked.
  using Within = std::function<double(const Situation&, const Choice&, double enough)>;
  Within within = nullptr;
};

/// What `predict` says.
Trial by_model();

/// Bytes that a step moves between the server and its workers.
struct Traffic {
  double to_server = 0;
  double to_workers = 0;
  double fuller() const { return std::max(to_server, to_workers); }
};
Traffic traffic(const JobCosts& job, const Choice& choice, std::span<const WorkerRates> workers);

/// Whether the options allow a plan whose steps take so long, and memory holds it.
bool holds(const Situation& in, const Choice& choice, double seconds);

/// The best share of every cut that the options allow and memory holds, in the order of cuts.
std::vector<Candidate> candidates(const JobCosts& job, const PlannerOptions& options,
                                  const ServerRates& server, std::span<const WorkerRates> workers);

/// The plan with the shortest step among those that the options allow and memory holds: what the
/// step model thinks best is tried, then what lies around the best of it in two cuts. Its
/// prediction has the trial's seconds. Nothing where no plan is possible. `present`, where it still
/// is one, is the first that is tried, and wins among equals. Of plans within 5 % of the shortest
/// one that slower workers would disturb less may win; but the plain one, Choice{}, where no other
/// is better by the margin. It does not where the options name a cut, nor where it does not take
/// less than `to_plain` of the seconds of `present`: then it is not worth a move from that one.
std::optional<Candidate> search(const Situation& situation, const Choice& present,
                                const Trial& trial, double to_plain = 1);

/// At most `count` plans, those with the shortest steps among all that such a search tries, in the
/// order of these.
std::vector<Candidate> best_plans(const Situation& situation, Trial trial, size_t count);

/// `candidates` with the trial's seconds in place of the model's, and what a search finds in the
/// row of its cut.
struct TriedCandidates {
  std::vector<Candidate> rows;  // by cut; empty: no plan is possible
  size_t found = 0;             // the row of what the search finds
};
TriedCandidates tried_candidates(const Situation& situation, const Trial& trial);

}  // namespace outrigger::training
