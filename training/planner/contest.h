#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "training/planner/search.h"

namespace outrigger::training {

/// How many times as long a plan's step counts for what slower workers would make of it: 1 where
/// they would not matter.
double exposure(const Situation& in, const Choice& choice);

/// Tries plans and keeps the best; each is tried once. References must outlive this.
class Contest {
 public:
  /// `present` and `to_plain` as in search().
  Contest(const Situation& in, const Choice& present, const Trial& trial, double to_plain)
      : in_(in), present_(present), trial_(trial), to_plain_(to_plain), left_(2 * trial.most) {}

  void enter(const Choice& choice);
  /// As much input kept local as the model thinks the server would make of it anyway, or about so
  /// much: then workers hold no leases for that until it is wanted.
  void enter_keeping_its_own(const Choice& choice);
  /// The best so far with all input local: between that and its own part lie plans that are worse
  /// than both, where workers each hold some of the little that is left to them.
  void enter_all_local();
  /// From the best plan of the two best cuts: what differs by one micro-batch, until nothing of
  /// that is better.
  void climb();

  std::optional<Candidate> winner() const;
  /// Those with the shortest steps.
  std::vector<Candidate> best(size_t count) const;

 private:
  struct Result {
    Choice choice;
    double seconds = 0;
  };
  /// What the trial says, as far as it matters.
  double tried(const Choice& choice) const;
  Candidate told(const Choice& choice, double seconds) const;
  std::vector<Choice> ranked() const;
  bool is_entered(const Choice& choice) const {
    return std::ranges::find(entered_, choice) != entered_.end();
  }
  /// How many times as long as another plan the plain one may take and win.
  double worth_a_plan() const { return 1 + in_.options.margin; }
  /// Whether the plain plan is to win if a longer trial agrees. `least`: seconds of the best.
  bool plain_may_win(double least) const;
  /// The shortest step; of those that are close, the two that slower workers would disturb least
  /// for what they take, and the shorter of these in a longer trial, likewise. Where the plain plan
  /// may win, that, and the one of the others that has to be worth more.
  Result winning() const;
  void climb_from(Choice at);

  const Situation& in_;
  const Choice present_;
  const Trial& trial_;
  const double to_plain_;
  size_t left_;  // halves of trials: one that ends early is half a one
  std::map<Choice, double> tried_;
  double least_ = std::numeric_limits<double>::infinity();
  std::vector<Choice> entered_;  // those of them that may be, in their order
  std::vector<Choice> best_;     // of each cut, in the order in which cuts were entered
};

}  // namespace outrigger::training
