#include "bench/plan/exhaustive.h"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/plan/drawn.h"
#include "common/error.h"
#include "training/planner/model/step_model.h"

namespace outrigger::training {
namespace {

constexpr uint64_t kStepsHeld = 48;
constexpr uint64_t kSettledAt = kStepsHeld / 3;  // the steps before it live on what was made ahead
constexpr double kJitter = 0.02;

/// A plan, and the model's time for it, which only says in which order plans are looked at.
struct HeldPlan {
  double predicted = 0;
  double least = 0;  // seconds: what the device works in a step, whatever the jitter
  size_t number = 0;
  Choice choice;
};

/// As seconds_fixed(); or, as soon as it is certain to be more than `enough`, something in between.
double seconds_up_to(const JobCosts& job, const SimulatedCluster& cluster, const HeldPlan& plan,
                     double enough) {
  if (plan.least > enough) return plan.least;
  double surplus = 0;
  double certain = plan.least;
  const auto result = simulate(job, cluster,
                               {.steps = kStepsHeld,
                                .jitter = kJitter,
                                .fixed = plan.choice,
                                .enough = [&](const std::vector<SimulatedStep>& until_now) {
                                  const double more = until_now.back().seconds - plan.least;
                                  if (more < 0) throw std::logic_error("a step below its least");
                                  if (until_now.size() > kSettledAt) surplus += more;
                                  certain = plan.least + surplus / (kStepsHeld - kSettledAt);
                                  return certain > enough;
                                }});
  return result.steps.size() < kStepsHeld ? certain : result.mean_seconds(kSettledAt, kStepsHeld);
}

std::vector<HeldPlan> held_plans(const JobCosts& job, const SimulatedCluster& cluster) {
  std::vector<WorkerRates> workers;
  for (const SimulatedWorker& worker : cluster.workers) workers.push_back(worker.rates);
  constexpr double kRounding = 1e-6;
  std::vector<HeldPlan> plans;
  for (const Choice& choice : all_choices(job)) {
    const Prediction told = predict(job, cluster.server, workers, choice);
    plans.push_back({.predicted = told.seconds,
                     .least = told.device * (1 - kJitter - kRounding),
                     .number = plans.size(),
                     .choice = choice});
  }
  std::ranges::sort(plans, {},
                    [](const HeldPlan& one) { return std::pair(one.predicted, one.number); });
  return plans;
}

}  // namespace

double seconds_fixed(const JobCosts& job, const SimulatedCluster& cluster, const Choice& choice) {
  const auto result =
      simulate(job, cluster, {.steps = kStepsHeld, .jitter = kJitter, .fixed = choice});
  return result.mean_seconds(kSettledAt, kStepsHeld);
}

BestPlan best_of_all(const JobCosts& job, const SimulatedCluster& cluster) {
  BestPlan best{.choice = {}, .seconds = std::numeric_limits<double>::infinity()};
  best.unsplit = seconds_fixed(job, cluster, {});
  size_t number = 0;
  for (const HeldPlan& plan : held_plans(job, cluster)) {
    const double seconds = seconds_up_to(job, cluster, plan, best.seconds);
    if (std::pair(seconds, plan.number) >= std::pair(best.seconds, number)) continue;
    best.seconds = seconds;
    best.choice = plan.choice;
    number = plan.number;
  }
  return best;
}

BestPlans::BestPlans(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream in(file_);
  int scenario = 0;
  for (BestPlan one; in >> scenario >> one.choice.cut >> one.choice.away >> one.choice.local >>
                     one.seconds >> one.unsplit;)
    known_[scenario] = one;
  if (in.is_open() && !in.eof())
    throw InvalidInput(file_.string() + ": after scenario " + std::to_string(scenario) +
                       ": wanted are lines of a scenario, cut, away, local, two times");
}

BestPlan BestPlans::of(int scenario, const JobCosts& job, const SimulatedCluster& cluster) {
  if (const auto found = known_.find(scenario); found != known_.end()) return found->second;
  const BestPlan best = best_of_all(job, cluster);
  if (file_.empty()) return best;
  std::ofstream out(file_, std::ios::app);
  out << std::setprecision(std::numeric_limits<double>::max_digits10) << scenario << ' '
      << best.choice.cut << ' ' << best.choice.away << ' ' << best.choice.local << ' '
      << best.seconds << ' ' << best.unsplit << '\n';
  if (!out) throw IoError(file_.string() + ": cannot be written");
  return best;
}

}  // namespace outrigger::training
