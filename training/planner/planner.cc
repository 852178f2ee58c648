#include "training/planner/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/log.h"
#include "training/planner/memory.h"

namespace outrigger::training {
namespace {

/// Steps of a plan before its measured time counts: the first ones compile and warm up.
constexpr uint32_t kWarmUp = 3;

/// Of the steps' relative deviation, what a mean over the newest five or so is off by.
constexpr double kDoubt = 0.4;

double server_percent(const JobCosts& job, const Choice& choice) {
  const double away = 100 - job.cuts[choice.cut].server_percent;
  return 100 - away * choice.away / job.micro_batches;
}

std::string describe(const JobCosts& job, const Choice& choice) {
  std::string text = "cut Input";
  if (choice.away > 0)
    text = fmt::format("cut {}, {} of {} stems away", job.cuts[choice.cut].name, choice.away,
                       job.micro_batches);
  if (choice.local > 0)
    text += fmt::format(", {} of {} inputs made by the server itself", choice.local,
                        job.micro_batches - choice.away);
  return text;
}

}  // namespace

std::vector<Candidate> candidates(const JobCosts& job, const PlannerOptions& options,
                                  const ServerRates& server, std::span<const WorkerRates> workers) {
  std::vector<Candidate> best;
  for (size_t cut = 0; cut < job.cuts.size(); ++cut) {
    if (cut > 0 && options.cut && *options.cut != cut) continue;
    std::optional<Candidate> of_cut;
    const uint32_t most = cut == 0 ? 0 : job.micro_batches;
    for (uint32_t away = cut == 0 ? 0 : 1; away <= most; ++away) {
      if (cut > 0 && options.away && *options.away != away) continue;
      Choice choice{cut, away};
      if (server_percent(job, choice) < options.least_server_percent) continue;
      if (!misfit(job, server, workers, choice).empty()) continue;
      const LocalInput input = best_local_input(job, server, workers, choice);
      if (!std::isfinite(input.prediction.seconds)) continue;
      choice.local = input.local;
      const Candidate one{choice, input.prediction};
      if (!of_cut || one.prediction.seconds < of_cut->prediction.seconds) of_cut = one;
    }
    if (of_cut) best.push_back(*of_cut);
  }
  return best;
}

Planner::Planner(JobCosts job, PlannerOptions options) : job_(std::move(job)), options_(options) {}

void Planner::measured(uint64_t step, const Choice& plan, double seconds, size_t workers) {
  if (workers != workers_) {
    workers_ = workers;
    measured_.clear();
    moved_.reset();  // what has changed may be followed at once
  }
  present_ = plan;
  Measured& of_plan = measured_[plan];
  if (step > of_plan.step + options_.memory) of_plan = {};
  of_plan.step = step;
  if (++of_plan.count <= kWarmUp) return;
  const double keep = of_plan.count == kWarmUp + 1 ? 0 : 0.8;
  if (keep > 0)
    of_plan.deviation = keep * of_plan.deviation + (1 - keep) * std::abs(seconds - of_plan.seconds);
  of_plan.seconds = keep * of_plan.seconds + (1 - keep) * seconds;
}

const Planner::Measured* Planner::lately(const Choice& choice, uint64_t step) const {
  const auto found = measured_.find(choice);
  if (found == measured_.end() || found->second.count <= kWarmUp ||
      step > found->second.step + options_.memory)
    return nullptr;
  return &found->second;
}

double Planner::estimate(const Candidate& candidate, double bias, uint64_t step) const {
  const Measured* ran = lately(candidate.choice, step);
  return ran != nullptr ? ran->seconds : bias * candidate.prediction.seconds;
}

std::optional<Decision> Planner::consider(uint64_t step, const ServerRates& server,
                                          std::span<const WorkerRates> workers) {
  const Measured* now = lately(present_, step);
  if (now == nullptr || (moved_ && step < *moved_ + options_.dwell)) return std::nullopt;
  const Prediction present = predict(job_, server, workers, present_);
  const double bias = std::isfinite(present.seconds) && present.seconds > 0
                          ? std::clamp(now->seconds / present.seconds, 0.5, 2.0)
                          : 1.0;
  const auto all = candidates(job_, options_, server, workers);
  const auto best = std::ranges::min_element(
      all, {}, [&](const Candidate& one) { return estimate(one, bias, step); });
  if (best == all.end() || best->choice == present_) return std::nullopt;
  const double seconds = estimate(*best, bias, step);
  // What spreads so far cannot be told apart by a mean over a few steps.
  const double doubt = kDoubt * now->deviation / std::max(now->seconds, 1e-12);
  if (seconds > (1 - options_.margin - doubt) * now->seconds) return std::nullopt;
  moved_ = step;
  return Decision{
      best->choice, seconds, now->seconds,
      fmt::format("{}: {:.0f} ms a step expected, bound by {}; {} takes {:.0f} ms, bound by {}; {} "
                  "workers",
                  describe(job_, best->choice), 1e3 * seconds, to_string(best->prediction.bound),
                  describe(job_, present_), 1e3 * now->seconds, to_string(present.bound),
                  workers.size())};
}

}  // namespace outrigger::training
