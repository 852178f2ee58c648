#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "training/planner/model/costs.h"
#include "training/planner/search.h"

namespace outrigger::training {

/// Seconds of training for which plans may be compared once, by trials of the usual length, where
/// nobody says what that takes; up to six comparisons can be saved up, three of them for sudden
/// changes alone.
constexpr double kSecondsALook = 3;

/// Of the time of steps so much may go into comparing plans, beyond what was saved up.
constexpr double kPartForLooks = 0.004;

/// The longest trials, in usual lengths: where steps take seconds, or training waits for nothing.
constexpr uint64_t kLongestTrials = 4;

/// A plan that the planner wants, and why.
struct Decision {
  Choice choice;
  double predicted = 0;  // seconds of a step
  double present = 0;    // of the plan before
  std::string reason;    // for people
};

/// Decides by what was measured: searches the legal plans with a trial, corrected by how far that
/// is off for the plan in force, or for one of its kind (no split, a frozen stem, a trained one)
/// that ran lately where that is worse, half of it where only the former has stems; plans that ran
/// lately count with their measured time, as it would be with the rates of now, and those of few
/// steps with no less than the trial's; none with less than a device and a decoder that have cores
/// of their own work for. Moves only for a gain above the margin, which grows with how far steps
/// spread, is less for no split and more for a kind that has not run lately, and not again within
/// the dwell, but for what was found right after a sudden change. What was measured of a plan that
/// took more than it promised counts for longer each time. Looks when something has changed, seldom
/// otherwise, and never more often than a search is worth. Deterministic; no clock of its own. Not
/// thread-safe.
class Planner {
 public:
  /// A trial of so many times the usual length, which takes so many times as long.
  using Trials = std::function<Trial(const JobCosts& job, uint64_t length)>;

  Planner(JobCosts job, PlannerOptions options, Trials trials);

  /// Other bounds from now on: plans are compared anew.
  void set_options(const PlannerOptions& options);

  /// What a step of the plan in force took, and how many workers there were, of all ranks: with
  /// another number, measured times are forgotten, unless that has put a look off for long.
  void measured(uint64_t step, const Choice& plan, double seconds, size_t workers);

  /// `others`: the further ranks, which take the same plan.
  std::optional<Decision> consider(uint64_t step, const ServerRates& server,
                                   std::span<const WorkerRates> workers,
                                   std::span<const RankRates> others = {});

  /// What an earlier run of the job had found: it is taken as soon as the step model says that it
  /// is better than the plan in force, until plans are compared with workers there.
  void found_before(const Choice& choice) { found_before_ = choice; }

  /// Whether the last consider() compared plans, and what that took, in seconds: from then on it is
  /// done as often as kPartForLooks pays for.
  bool has_looked() const { return has_looked_; }
  void took(double seconds) { look_takes_ = seconds; }

  const JobCosts& job() const { return job_; }
  const Choice& present() const { return present_; }

 private:
  struct Measured {
    double seconds = 0;
    double deviation = 0;  // mean distance of a step from `seconds`
    double bias = 0;       // of these to the trial's, when plans were last compared; 0: never
    double told = 0;       // what the step model told of it when it was left; 0: nothing
    uint64_t keeps = 0;    // steps for which this counts, if more than the options say
    uint64_t step = 0;
    uint32_t count = 0;
  };
  /// What was known when plans were last compared.
  struct Look {
    Choice present;
    double seconds = 0;
    uint64_t step = 0;
    uint64_t again = 0;  // steps until the next look, if nothing changes
  };
  /// The plan in force, when it is compared with others.
  struct Present {
    Prediction told;
    double deviation = 0;
    double seconds = 0;
    bool runs = false;      // and may be
    double counts_for = 0;  // seconds, with its burden
    double relief = 1;      // what the found plan counts for, where slower workers disturb it less
    bool burdened() const { return counts_for > seconds; }
  };
  /// By which part of the present plan's seconds another must be better, and how much of what seems
  /// better may be chance.
  struct Wanted {
    double margin = 0;
    double doubt = 0;
  };
  /// Seconds of a step with which a plan was moved to.
  struct Promise {
    Choice choice;
    double seconds = 0;
  };
  /// What tells how long plans take: trials, and how far they are off for each kind.
  struct Estimate {
    uint64_t step = 0;
    std::array<double, 3> bias{};
    Trial::Within tried = nullptr;
  };
  uint64_t steps_kept(const Measured& measured) const;
  const Measured* lately(const Choice& choice, uint64_t step) const;
  /// What steps of that length pay for between two moves.
  uint64_t length_of_trials(double seconds) const;
  /// Forgets what was measured on machines or links of other rates.
  void follow(uint64_t step, const std::vector<RankRates>& ranks);
  /// All that was measured, and what was promised. Returns what was measured of the present plan.
  Measured forget();
  /// Forgets what was measured with other workers.
  void forget_for_others(uint64_t step);
  /// Notes what the step model says of the plan in force, before another is.
  void leave_present();
  /// What a micro-batch of a plan moves over a worker's link, in bytes.
  double bytes_on_links(const Choice& choice) const;
  bool is_news(const Measured& now) const;
  /// Notes for how many steps machines, or steps, have been much slower or faster than when plans
  /// were last compared, or there were others. `now`: what steps take, where that is known.
  void note_sudden(const Measured* now);
  /// Whether that is so for longer than by chance.
  bool lasts() const;
  /// Whether a look for such a thing was taken lately, or one that followed it, and not the last.
  bool follows_sudden(uint64_t step) const;
  /// Whether the next look is the first that follows: it is taken without waiting for the dwell.
  bool hurries(uint64_t step) const;
  /// The first step at which plans may be compared again.
  uint64_t earliest_look(uint64_t step) const;
  /// Whether enough is saved up for a look now: some is left for what is sudden.
  bool can_look(uint64_t step) const;
  void note_look(uint64_t step);
  /// Looks for the best plan, and whether it is better enough.
  std::optional<Decision> compare(uint64_t step, const Measured& now,
                                  const std::vector<RankRates>& ranks);
  Wanted wanted(const Present& now, const Choice& found) const;
  std::optional<Decision> decide(uint64_t step, const Present& now, const Candidate& found);
  /// What was measured of a plan that is left since it took more than it promised counts for twice
  /// as long as it did for the last such plan of its kind: else all of them were tried again and
  /// again.
  void keep_if_disappointing(const Present& now);
  /// To what was found before, where that is better by the step model.
  std::optional<Decision> go_back(uint64_t step);
  /// What a plan's step is made of: more with each.
  enum class Kind : uint8_t { kUnsplit, kFrozen, kTrained };
  Kind kind_of(const Choice& choice) const;
  /// Whether one of the kind ran lately, whatever has changed since; no split always counts as
  /// that.
  bool is_proven(Kind kind, uint64_t step) const;
  /// How many times as long as a trial says plans of a kind count for.
  double doubt_of(Kind kind, uint64_t step) const;
  /// How far the trial is off for plans of a kind, as far as that is known.
  double bias_of(Kind kind, uint64_t step) const;
  /// What a step counts for under a plan that lives on what links would bring much too late, and
  /// the server makes before: sooner or later the device waits for such a thing, and links carry
  /// them all in vain. `told`: what the step model says of it, much of which would be waiting.
  static double with_burden(double seconds, const Prediction& told);
  /// What no step can take less than: a device and a decoder with cores of their own work for that
  /// long.
  static double least_seconds(const Situation& in, const Choice& choice, const Prediction& told);
  /// Seconds of a step, or more than `enough`.
  double counts_for(const Situation& in, const Choice& choice, const Estimate& by,
                    double enough) const;
  /// The best plan by the trial, corrected, and by what was measured. `to_plain`: as in search().
  std::optional<Candidate> best(const Situation& situation, uint64_t step, const Trial& trial,
                                double to_plain) const;

  const JobCosts job_;
  PlannerOptions options_;
  const Trials trials_;
  Choice present_;
  size_t workers_ = 0;
  std::map<Choice, Measured> measured_;
  std::array<std::optional<uint64_t>, 3> ran_;  // when each kind last did
  std::optional<uint64_t> moved_;               // the step of the last move or change of workers
  std::vector<RankRates> ranks_;                // for which measured times count
  std::vector<RankRates> newest_;               // of the last step
  std::vector<RankRates> looked_at_;            // of the last look
  std::vector<RankRates> settled_at_;           // of the last look that had an end
  // How far trials are off for the plain plan, as it was last seen, whatever rates are since.
  struct PlainBias {
    double bias = 0;
    uint64_t step = 0;
  };
  std::optional<PlainBias> plain_bias_;
  size_t unlike_ = 1;  // ranks of which each must be tried, at the last look
  std::optional<Choice> found_before_;
  std::optional<Promise> promised_;  // by the last move, with rates like those of now
  std::optional<Look> looked_;
  uint64_t last_look_ = 0;           // its step
  double expected_ = 0;              // seconds of a step, by the last look
  uint32_t sudden_for_ = 0;          // steps
  uint32_t other_machines_for_ = 0;  // likewise; a mean of steps may come from one
  uint32_t followers_ = 0;           // looks that may follow one for that
  double looks_ = kMostLooks;        // that may be taken now
  bool has_looked_ = false;
  std::optional<double> look_takes_;
  static constexpr double kMostLooks = 6;
  /// Of these, what is left for sudden changes: one look when such a thing happens, one at what has
  /// come of it, and one once more is known of the machines.
  static constexpr uint32_t kForSudden = 3;
  /// Steps of a plan before its measured time counts: the first ones compile and warm up.
  static constexpr uint32_t kWarmUp = 3;
  /// Steps that a plan must have run for what it took to count alone once another is in force.
  static constexpr uint32_t kLong = 20;
  /// Of the steps' deviation, what a mean over the newest seven or so is off by.
  static constexpr double kDoubt = 0.25;
};

}  // namespace outrigger::training
