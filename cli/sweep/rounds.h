#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/sweep/sweep.h"

namespace outrigger::cli {

/// How one run of a share went.
struct ShareRun {
  double rate = 0;  // images a second
  double stall_percent = 0;
  int exit_status = 0;       // but 0: it failed and has measured nothing
  std::string failure = {};  // how it failed, for people
};

/// What is reckoned of a share, images a second: as SweepPoint has it.
struct Reckoned {
  double predicted = 0;
  double bound = 0;
};

/// Of every share, from what the machine measures now.
using ReckonShares = std::function<std::vector<Reckoned>(const Sweep& sweep)>;
using RunShare = std::function<ShareRun(const SweepPoint& point, int round)>;
using KeepSweep = std::function<void(const Sweep& so_far)>;

/// Runs every share that is not left out once a round, the rounds in turn, and notes the medians of
/// what its runs measured, and of what was reckoned at the beginning of every round; of the first,
/// that is in `sweep`. A share of which a run fails is run no more, and left out where none
/// has measured; the first such status is the sweep's. Before the first run and after each, `keep`
/// gets the sweep so far, in which shares are left out that no run has measured yet. Throws what
/// these throw.
Sweep run_rounds(Sweep sweep, int rounds, const ReckonShares& reckon, const RunShare& run,
                 const KeepSweep& keep);

/// "10 runs of 6 to 30 steps take 5.0 min by the model, and what their starts take"
std::string length_text(const Sweep& sweep, int rounds);

}  // namespace outrigger::cli
