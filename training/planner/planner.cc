#include "training/planner/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/log.h"
#include "training/planner/alike.h"
#include "training/planner/contest.h"
#include "training/planner/reason.h"

namespace outrigger::training {
namespace {

/// Steps of a plan before it is compared with others: the first ones live on what was made ahead.
constexpr uint32_t kEnough = 8;

/// Likewise where machines have suddenly become others, and of what was then found: better a first
/// answer soon, which is looked at again, than a right one late.
constexpr uint32_t kEnoughAtFirst = 6;

/// Steps for which machines are others before that counts as a sudden change, which is seldom by
/// chance: their rates are means already.
constexpr uint32_t kOthers = 3;

/// Of the margin, where what would be better is no split at all: nothing may be worse than that.
constexpr double kToUnsplit = 1.0 / 3;

/// Steps after which plans are compared again though nothing seems to have changed: soon at first,
/// when what was measured may still be of a start, then after twice as many each time.
constexpr uint64_t kLookAgain = 25;
constexpr uint64_t kLookAgainAtLast = 200;

}  // namespace

Planner::Planner(JobCosts job, PlannerOptions options, Trials trials)
    : job_(std::move(job)), options_(options), trials_(std::move(trials)) {}

void Planner::set_options(const PlannerOptions& options) {
  options_ = options;
  looked_.reset();
  moved_.reset();
  looks_ = std::max<double>(looks_, 1 + kForSudden);
}

uint64_t Planner::length_of_trials(double seconds) const {
  const double affordable = static_cast<double>(options_.dwell) * seconds / kSecondsALook;
  return static_cast<uint64_t>(std::clamp(affordable, 1.0, double{kLongestTrials}));
}

void Planner::measured(uint64_t step, const Choice& plan, double seconds, size_t workers) {
  if (workers != workers_) {
    workers_ = workers;
    forget_for_others(step);
  }
  if (plan != present_) {
    leave_present();
    ranks_ = newest_;  // by which it was found; links may count for more from now on
  }
  present_ = plan;
  const auto usual = kSecondsALook * static_cast<double>(length_of_trials(seconds) * unlike_);
  const double price = look_takes_ ? *look_takes_ / kPartForLooks : usual;
  looks_ = std::min(kMostLooks, looks_ + seconds / price);
  Measured& of_plan = measured_[plan];
  if (step > of_plan.step + steps_kept(of_plan)) of_plan = {.keeps = of_plan.keeps};
  of_plan.step = step;
  if (++of_plan.count <= kWarmUp) return;
  ran_.at(static_cast<size_t>(kind_of(plan))) = step;
  // All steps weigh the same until there are some: the first may be one of many kinds.
  const double newest = std::max(0.15, 1.0 / (of_plan.count - kWarmUp));
  if (newest < 1)
    of_plan.deviation += newest * (std::abs(seconds - of_plan.seconds) - of_plan.deviation);
  of_plan.seconds += newest * (seconds - of_plan.seconds);
}

Planner::Measured Planner::forget() {
  Measured present = measured_[present_];
  present.keeps = 0;
  measured_.clear();
  promised_.reset();
  return present;
}

void Planner::forget_for_others(uint64_t step) {
  // Who comes and goes all the time does not put off what is due for ever.
  constexpr uint64_t kLongDue = 5 * kEnough;
  const bool is_due = !looked_ && step >= last_look_ + kLongDue;
  const Measured now = forget();
  plain_bias_.reset();
  if (is_due) measured_[present_] = now;
  moved_.reset();  // what has changed may be followed at once
}

void Planner::leave_present() {
  const auto ran = measured_.find(present_);
  if (ran == measured_.end() || newest_.empty()) return;
  const Situation situation{job_, options_, newest_[0].server, newest_[0].workers,
                            std::span(newest_).subspan(1)};
  const double told = predict(situation, present_).seconds;
  ran->second.told = std::isfinite(told) ? told : 0;
}

void Planner::follow(uint64_t step, const std::vector<RankRates>& ranks) {
  if (are_alike(ranks_, ranks, {.bytes = bytes_on_links(present_)})) return;
  const bool others = workers_of(ranks_) != workers_of(ranks);
  ranks_ = ranks;
  // What is due is not put off by what changes again and again.
  const bool is_due = !looked_;
  looked_.reset();
  if (others) return;  // then measured() has forgotten
  const Measured now = forget();
  measured_[present_] = is_due ? now : Measured{.step = step, .count = kWarmUp};
}

double Planner::bytes_on_links(const Choice& choice) const {
  if (choice.away == 0) return job_.pixels;
  const CutCosts& cut = job_.cuts[choice.cut];
  return std::max(job_.pixels, cut.activations + (cut.trains ? cut.gradients + cut.weights : 0));
}

bool Planner::is_news(const Measured& now) const {
  if (!looked_ || present_ != looked_->present) return true;
  const double told_apart = std::max(options_.margin * looked_->seconds, now.deviation);
  return std::abs(now.seconds - looked_->seconds) > told_apart;
}

void Planner::note_sudden(const Measured* now) {
  constexpr double kSudden = 0.3;
  constexpr double kSuddenRate = 0.45;  // half of the speed and less, or twice and more
  const bool looked = expected_ > 0;    // the first look is not sudden
  const bool other_machines =
      looked && !are_alike(looked_at_, newest_, {kSuddenRate, bytes_on_links(present_)});
  const bool other_steps =
      looked && now != nullptr && std::abs(now->seconds - expected_) > kSudden * expected_;
  other_machines_for_ = other_machines ? other_machines_for_ + 1 : 0;
  sudden_for_ = other_machines || other_steps ? sudden_for_ + 1 : 0;
}

bool Planner::lasts() const { return sudden_for_ >= kEnough || other_machines_for_ >= kOthers; }

// What is found right after such a change is found by what has just been measured.
bool Planner::follows_sudden(uint64_t step) const {
  return followers_ > 0 && step <= last_look_ + kLookAgain + kEnough;
}

bool Planner::hurries(uint64_t step) const {
  return follows_sudden(step) && followers_ == kForSudden - 1;
}

uint64_t Planner::earliest_look(uint64_t step) const {
  if (hurries(step)) return last_look_ + kEnoughAtFirst;
  if (follows_sudden(step)) return last_look_ + options_.dwell;
  return moved_ ? *moved_ + options_.dwell : 0;
}

bool Planner::can_look(uint64_t step) const {
  return looks_ >= (lasts() || follows_sudden(step) ? 1 : 1 + kForSudden);
}

void Planner::note_look(uint64_t step) {
  const bool sudden = lasts() || other_machines_for_ > 0;
  const bool again = other_machines_for_ >= kOthers;  // since the last look
  const uint32_t left = follows_sudden(step) && !again ? followers_ : sudden ? kForSudden : 1;
  followers_ = left - 1;
  looks_ -= 1;
  last_look_ = step;
  has_looked_ = true;
}

std::optional<Decision> Planner::go_back(uint64_t step) {
  if (!found_before_) return std::nullopt;
  const Situation situation{job_, options_, newest_[0].server, newest_[0].workers,
                            std::span(newest_).subspan(1)};
  const double then = predict(situation, *found_before_).seconds;
  const double now = predict(situation, present_).seconds;
  if (then > (1 - options_.margin) * now || !holds(situation, *found_before_, then)) {
    // With workers there, steps tell from now on.
    if (workers_ > 0 && measured_[present_].count >= kEnough) found_before_.reset();
    return std::nullopt;
  }
  moved_ = step;
  const Choice choice = *std::exchange(found_before_, std::nullopt);
  return Decision{
      choice, then, now,
      fmt::format("{}, as before the restart: {:.0f} ms a step expected; {} {:.0f} ms",
                  describe(job_, choice), 1e3 * then, describe(job_, present_), 1e3 * now)};
}

std::optional<Decision> Planner::consider(uint64_t step, const ServerRates& server,
                                          std::span<const WorkerRates> workers,
                                          std::span<const RankRates> others) {
  std::vector<RankRates> ranks{{server, {workers.begin(), workers.end()}}};
  ranks.insert(ranks.end(), others.begin(), others.end());
  follow(step, ranks);
  newest_ = ranks;
  has_looked_ = false;
  // What the server makes alone is all that there is.
  if (workers_of(ranks) == 0 && present_.away == 0) return std::nullopt;
  if (auto decision = go_back(step)) return decision;
  const Measured* now = lately(present_, step);
  note_sudden(now != nullptr && now->count >= kEnough ? now : nullptr);
  const bool soon = hurries(step) || other_machines_for_ >= kOthers;
  const uint32_t enough = soon ? kEnoughAtFirst : kEnough;
  if (now == nullptr || now->count < enough || step < earliest_look(step)) return std::nullopt;
  const bool news = is_news(*now);
  if (!news && step < looked_->step + looked_->again) return std::nullopt;
  if (!can_look(step)) return std::nullopt;
  note_look(step);
  const bool is_followed = news || followers_ > 0;
  const uint64_t again = is_followed ? kLookAgain : std::min(2 * looked_->again, kLookAgainAtLast);
  looked_ = {present_, now->seconds, step, again};
  expected_ = now->seconds;
  looked_at_ = newest_;
  auto decision = compare(step, *now, unlike(ranks));
  if (looked_) settled_at_ = newest_;  // else it is looked at again before that is told
  return decision;
}

std::optional<Decision> Planner::compare(uint64_t step, const Measured& now,
                                         const std::vector<RankRates>& ranks) {
  unlike_ = ranks.size();
  const Situation situation{job_, options_, ranks[0].server, ranks[0].workers,
                            std::span(ranks).subspan(1)};
  const Trial trial = trials_(job_, length_of_trials(now.seconds));
  const double expected = trial.seconds(situation, present_);
  Present present{.told = predict(situation, present_), .deviation = now.deviation};
  present.seconds = now.seconds;
  present.runs = holds(situation, present_, now.seconds) && std::isfinite(expected);
  present.counts_for = with_burden(now.seconds, present.told);
  // Of a plan that lives on what comes too late other plans learn nothing.
  const bool tells = present.runs && expected > 0 && !present.burdened();
  measured_[present_].bias = tells ? std::clamp(now.seconds / expected, 0.5, 2.0) : 1.0;
  if (tells && present_ == Choice{}) plain_bias_ = {measured_[present_].bias, step};
  const Wanted of_plain = wanted(present, Choice{});
  const auto found = best(situation, step, trial, 1 - of_plain.margin - of_plain.doubt);
  log::debug(
      "step {}: {} takes {:.1f} ms (+- {:.1f}), a trial {:.1f}; of all plans {} is best, {:.1f} ms",
      step, describe(job_, present_), 1e3 * now.seconds, 1e3 * now.deviation, 1e3 * expected,
      found ? describe(job_, found->choice) : "none",
      1e3 * (found ? found->prediction.seconds : 0));
  if (!found || found->choice == present_) return std::nullopt;
  // What is disturbed less need not be as much faster; stems must be, whose trials err the most.
  if (found->choice.away <= present_.away)
    present.relief =
        std::min(1.0, exposure(situation, found->choice) / exposure(situation, present_));
  return decide(step, present, *found);
}

Planner::Wanted Planner::wanted(const Present& now, const Choice& found) const {
  // What spreads so far cannot be told apart by a mean over a few steps; half of that is enough
  // doubt where no stems are at stake, only who makes how much of the input.
  const double at_stake = found.away > 0 || present_.away > 0 ? 1 : 0.5;
  const double doubt = at_stake * kDoubt * now.deviation / std::max(now.seconds, 1e-12);
  // Else what is burdened from here, and not from there, would be gone back to.
  const bool for_less = found == Choice{} && !now.burdened();
  return {options_.margin * (for_less ? kToUnsplit : 1), doubt};
}

std::optional<Decision> Planner::decide(uint64_t step, const Present& now, const Candidate& found) {
  const double seconds = found.prediction.seconds;
  const auto [margin, doubt] = wanted(now, found.choice);
  const double counts_for = now.relief * seconds;
  if (now.runs && std::max(seconds, counts_for / (1 - margin)) > now.counts_for)
    return std::nullopt;
  moved_ = step;
  const double enough = (1 - margin - doubt) * now.counts_for;
  if (now.runs && counts_for > enough) {
    looked_.reset();  // perhaps, once more steps are known
    return std::nullopt;
  }
  keep_if_disappointing(now);
  const double unproven = doubt_of(kind_of(found.choice), step);
  const double told = seconds / unproven;
  expected_ = told;
  promised_ = {found.choice, told};
  std::string reason =
      fmt::format("{}: {:.0f} ms a step expected, bound by {}; {} takes {:.0f} ms, bound by {}{}",
                  describe(job_, found.choice), 1e3 * told, to_string(found.prediction.bound),
                  describe(job_, present_), 1e3 * now.seconds, to_string(now.told.bound),
                  now.burdened() ? ", and much of what its workers bring comes too late" : "");
  if (now.runs) {
    const double most = std::min(enough / now.relief, now.counts_for) / unproven;
    reason += describe_gain({.is = 1 - told / now.seconds, .wanted = 1 - most / now.seconds});
  }
  reason += "; " + count_of_workers(workers_);
  const double bytes = std::max(bytes_on_links(present_), bytes_on_links(found.choice));
  const std::string changed = what_changed(settled_at_, newest_, {.bytes = bytes});
  if (!changed.empty()) reason += "; since plans were last compared " + changed;
  return Decision{found.choice, told, now.seconds, reason};
}

}  // namespace outrigger::training
