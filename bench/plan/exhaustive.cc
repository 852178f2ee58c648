#include "bench/plan/exhaustive.h"

#include <fstream>
#include <iomanip>
#include <limits>
#include <string>
#include <utility>

#include "bench/plan/drawn.h"
#include "common/error.h"

namespace outrigger::training {

double seconds_fixed(const JobCosts& job, const SimulatedCluster& cluster, const Choice& choice) {
  constexpr uint64_t kSteps = 48;  // the first live on what was made ahead
  const auto result = simulate(job, cluster, {.steps = kSteps, .jitter = 0.02, .fixed = choice});
  return result.mean_seconds(kSteps / 3, kSteps);
}

BestPlan best_of_all(const JobCosts& job, const SimulatedCluster& cluster) {
  BestPlan best{.choice = {}, .seconds = std::numeric_limits<double>::infinity()};
  for (const Choice& choice : all_choices(job)) {
    const double seconds = seconds_fixed(job, cluster, choice);
    if (choice == Choice{}) best.unsplit = seconds;
    if (seconds >= best.seconds) continue;
    best.seconds = seconds;
    best.choice = choice;
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
