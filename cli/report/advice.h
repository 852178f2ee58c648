#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace outrigger::cli {

/// How a job is split at its end, what it leaves to the planner, what its settings allow, and where
/// it runs. As it stands: of a job of which no more is known.
struct SplitNotes {
  bool stems_away = true;    // false: cut Input
  bool stems_train = true;   // gradients come back from the server
  bool cut_is_open = false;  // the planner moves it
  bool share_is_open = false;
  uint64_t staleness = 0;
  std::string activations;  // how they travel, as plans tell it: "int8", …; empty: not known
  std::string gradients;
  bool ranks_share_cores = false;  // all ranks ran on the cores of one machine
  bool ranks_step_alone = false;   // syncEverySteps above 1: no staleness, no all-reduce
  bool sums_are_bfloat16 = false;  // allReducePrecision
  bool stops_early = false;        // stopAfterNoGain: only the server evaluates
  bool workers_evaluate = false;   // as evaluate.place says
  std::optional<uint64_t> steps = std::nullopt;  // that the job asks for, if it does not in epochs
  bool is_planned() const { return cut_is_open || share_is_open; }
};

/// How a job has spent its time, measured or simulated.
struct Limits {
  double stall_percent = 0;      // of its steps' time the device waits for workers or links
  std::string stall_cause;       // for what most: "Read", "Decode", "Stem", "Link", "Weights"
  double optimizer_percent = 0;  // of that time, the end of the step
  double ranks_percent = 0;      // of that time, other ranks
  uint64_t workers = 0;
  std::optional<uint64_t> desired_workers = std::nullopt;  // that it can use, by the planner
  double evaluation_percent = 0;  // of all time training stands still while the server evaluates
  double checkpoint_percent = 0;  // and while a checkpoint is written
  SplitNotes split = {};
  std::string failure = {};  // of a run that failed: how, as a sentence
};

/// What limits the job and what to change, in some sentences.
std::string advice(const Limits& limits);

}  // namespace outrigger::cli
