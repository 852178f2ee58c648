#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "training/planner/planner.h"

/// What plans count for when the planner compares them: trials, corrected by what was measured.
namespace outrigger::training {

double Planner::with_burden(double seconds, const Prediction& told) {
  constexpr double kMuchLonger = 2;
  constexpr double kBurden = 1.06;
  const bool waits = told.bound == Bound::kLink && std::isfinite(told.seconds) &&
                     told.seconds > kMuchLonger * std::max(seconds, told.device);
  return waits ? kBurden * seconds : seconds;
}

// Where trials take links for slower than they are, less than what they say is believed.
double Planner::least_seconds(const Situation& in, const Choice& choice, const Prediction& told) {
  if (in.server.shared) return 0;  // then device and decoding are measured beside each other
  return std::max(told.device, choice.local * in.server.decode);
}

uint64_t Planner::steps_kept(const Measured& measured) const {
  return std::max(options_.memory, measured.keeps);
}

void Planner::keep_if_disappointing(const Present& now) {
  constexpr uint64_t kLongest = 6400;
  if (!now.runs || !promised_ || promised_->choice != present_) return;
  if (now.seconds <= (1 + options_.margin) * promised_->seconds) {
    measured_[present_].keeps = 0;
    return;
  }
  uint64_t longest = options_.memory;
  for (const auto& [plan, of_plan] : measured_) {
    if (kind_of(plan) == kind_of(present_)) longest = std::max(longest, of_plan.keeps);
  }
  measured_[present_].keeps = std::min(2 * longest, std::max(kLongest, options_.memory));
}

const Planner::Measured* Planner::lately(const Choice& choice, uint64_t step) const {
  const auto found = measured_.find(choice);
  if (found == measured_.end() || found->second.count <= kWarmUp ||
      step > found->second.step + steps_kept(found->second))
    return nullptr;
  return &found->second;
}

Planner::Kind Planner::kind_of(const Choice& choice) const {
  if (choice.away == 0) return Kind::kUnsplit;
  return job_.cuts[choice.cut].trains ? Kind::kTrained : Kind::kFrozen;
}

bool Planner::is_proven(Kind kind, uint64_t step) const {
  if (kind == Kind::kUnsplit || options_.cut) return true;  // who names a cut wants it
  const auto& last = ran_.at(static_cast<size_t>(kind));
  return last && step <= *last + options_.memory;
}

// How far the trial is off for what has not run nobody knows. With the margin that is less than the
// 5 % which a better plan may be passed over for.
double Planner::doubt_of(Kind kind, uint64_t step) const {
  return is_proven(kind, step) ? 1 : 1 + options_.margin / 2;
}

double Planner::bias_of(Kind kind, uint64_t step) const {
  // Where the trial is off for gradients that come back, frozen stems are not to blame; where it is
  // off for those, trained ones are.
  const bool of_gradients = kind == Kind::kFrozen && kind_of(present_) == Kind::kTrained;
  double bias = of_gradients ? 0 : measured_.at(present_).bias;
  // What is off for stems is theirs, or everyone's: of what needs none, half of it is believed.
  if (kind == Kind::kUnsplit && kind_of(present_) != Kind::kUnsplit) bias = std::sqrt(bias);
  for (const auto& [plan, of_plan] : measured_) {
    const Kind other = kind_of(plan);
    const bool tells = other == kind || (other == Kind::kFrozen && kind == Kind::kTrained) ||
                       (of_gradients && other < kind);
    // Of the plain plan, for longer only its own time counts.
    const bool newly = plan != Choice{} || step <= of_plan.step + options_.memory;
    if (tells && newly && lately(plan, step) != nullptr) bias = std::max(bias, of_plan.bias);
  }
  return bias > 0 ? bias : measured_.at(present_).bias;
}

double Planner::counts_for(const Situation& in, const Choice& choice, const Estimate& by,
                           double enough) const {
  const Measured* ran = lately(choice, by.step);
  // Some steps of another plan, whose times spread, say less than a trial.
  const bool known = ran != nullptr && (choice == present_ ||
                                        kDoubt * ran->deviation <= options_.margin * ran->seconds);
  double its_bias = by.bias.at(static_cast<size_t>(kind_of(choice)));
  // Plans that are nearly as good would take turns, each believed again once the other is in force.
  constexpr uint64_t kRemembered = 2000;
  if (choice == Choice{} && choice != present_ && present_.away == 0 && plain_bias_ &&
      by.step <= plain_bias_->step + kRemembered)
    its_bias = std::max(its_bias, plain_bias_->bias);
  const Prediction told = predict(in, choice);
  const double least = least_seconds(in, choice, told);
  if (!known)
    return std::max(least * doubt_of(kind_of(choice), by.step),
                    its_bias * with_burden(by.tried(in, choice, enough / its_bias), told));
  // A plan whose stems nobody runs is the server's to do: what it took then is not the plan's.
  if (!std::isfinite(told.seconds)) return told.seconds;
  if (choice == present_) return with_burden(ran->seconds, told);
  // All machines may be slower or faster now than when it ran.
  const double times = ran->told > 0 ? told.seconds / ran->told : 1;
  const double now =
      std::max(std::min(ran->seconds, least), with_burden(times * ran->seconds, told));
  if (ran->count >= kLong || now > enough) return now;
  // Some steps live on what was made ahead, under this plan or the one before.
  const double believed = std::min(1.0, its_bias);
  return std::max(now, believed * by.tried(in, choice, enough / believed));
}

std::optional<Candidate> Planner::best(const Situation& situation, uint64_t step,
                                       const Trial& trial, double to_plain) const {
  const auto bias = [&](Kind kind) { return bias_of(kind, step) * doubt_of(kind, step); };
  const Estimate basis{.step = step,
                       .bias = {bias(Kind::kUnsplit), bias(Kind::kFrozen), bias(Kind::kTrained)}};
  const auto within = [&](Trial::Within tried) -> Trial::Within {
    if (!tried) return nullptr;
    return [this, by = Estimate{basis.step, basis.bias, std::move(tried)}](
               const Situation& in, const Choice& choice, double enough) {
      return counts_for(in, choice, by, enough);
    };
  };
  const auto whole = [&](const Trial::Seconds& tried) -> Trial::Seconds {
    if (!tried) return nullptr;
    const auto any = within(
        [&tried](const Situation& in, const Choice& choice, double) { return tried(in, choice); });
    return [any](const Situation& in, const Choice& choice) {
      return any(in, choice, std::numeric_limits<double>::infinity());
    };
  };
  return search(
      situation, present_,
      {whole(trial.seconds), trial.most, whole(trial.longer), trial.thorough, within(trial.within)},
      to_plain);
}

}  // namespace outrigger::training
