#include "cli/sweep/rounds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/plan_table.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

/// Of the run in the middle by rate; of an even number the means of both.
void note_median(std::vector<ShareRun> runs, SweepPoint& point) {
  std::ranges::sort(runs, {}, &ShareRun::rate);
  const ShareRun& lower = runs[(runs.size() - 1) / 2];
  const ShareRun& upper = runs[runs.size() / 2];
  point.measured = (lower.rate + upper.rate) / 2;
  point.stall_percent = (lower.stall_percent + upper.stall_percent) / 2;
}

Sweep so_far(Sweep sweep) {
  for (SweepPoint& one : sweep.points) {
    if (one.left_out.empty() && one.measured == 0) one.left_out = "not run yet";
  }
  return sweep;
}

}  // namespace

Sweep run_rounds(Sweep sweep, int rounds, const RunShare& run, const KeepSweep& keep) {
  keep(so_far(sweep));
  std::vector<std::vector<ShareRun>> runs(sweep.points.size());
  std::vector<bool> failed(sweep.points.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sweep.points.size(); ++i) {
      SweepPoint& point = sweep.points[i];
      if (!point.left_out.empty() || failed[i]) continue;
      const ShareRun its = run(point, round);
      if (its.exit_status == 0) {
        runs[i].push_back(its);
        note_median(runs[i], point);
      } else {
        failed[i] = true;
        if (runs[i].empty()) point.left_out = its.failure;
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
