#include "cli/sweep/rounds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/plan_table.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

/// Of an even number the mean of the two in the middle.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// What the rounds have said of a share.
struct Rounds {
  std::vector<double> rates;
  std::vector<double> stalls;
  std::vector<double> predicted;
  std::vector<double> bounds;

  void add(const ShareRun& run, SweepPoint& point) {
    rates.push_back(run.rate);
    stalls.push_back(run.stall_percent);
    point.measured = median(rates);
    point.stall_percent = median(stalls);
  }
  void add(const Reckoned& one, SweepPoint& point) {
    predicted.push_back(one.predicted);
    bounds.push_back(one.bound);
    point.predicted = median(predicted);
    point.bound = median(bounds);
  }
};

Sweep so_far(Sweep sweep) {
  for (SweepPoint& one : sweep.points) {
    if (one.left_out.empty() && one.measured == 0) one.left_out = "not run yet";
  }
  return sweep;
}

}  // namespace

Sweep run_rounds(Sweep sweep, int rounds, const ReckonShares& reckon, const RunShare& run,
                 const KeepSweep& keep) {
  keep(so_far(sweep));
  std::vector<Rounds> told(sweep.points.size());
  for (size_t i = 0; i < told.size(); ++i)
    told[i].add(Reckoned{sweep.points[i].predicted, sweep.points[i].bound}, sweep.points[i]);
  std::vector<bool> failed(sweep.points.size());
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) {
      const std::vector<Reckoned> now = reckon(sweep);
      for (size_t i = 0; i < told.size(); ++i) told[i].add(now.at(i), sweep.points[i]);
    }
    for (size_t i = 0; i < sweep.points.size(); ++i) {
      SweepPoint& point = sweep.points[i];
      if (!point.left_out.empty() || failed[i]) continue;
      const ShareRun its = run(point, round);
      if (its.exit_status == 0) {
        told[i].add(its, point);
      } else {
        failed[i] = true;
        if (told[i].rates.empty()) point.left_out = its.failure;
        if (sweep.exit_status == 0) sweep.exit_status = its.exit_status;
      }
      keep(so_far(sweep));
    }
  }
  return sweep;
}

std::string length_text(const Sweep& sweep, int rounds) {
  int runs = 0;
  int fewest = 0;
  int most = 0;
  double seconds = 0;
  for (const SweepPoint& one : sweep.points) {
    if (!one.left_out.empty()) continue;
    fewest = runs == 0 ? one.steps : std::min(fewest, one.steps);
    most = std::max(most, one.steps);
    runs += rounds;
    seconds += rounds * one.seconds;
  }
  const std::string steps =
      fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  return fmt::format("{} runs of {} steps take {} by the model, and what their starts take", runs,
                     steps, duration_text(seconds));
}

}  // namespace outrigger::cli
