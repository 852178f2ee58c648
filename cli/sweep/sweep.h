#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/launch.h"
#include "api/training_job.h"
#include "training/planner/model/profile.h"

namespace outrigger::cli {

struct SweepOptions {
  std::filesystem::path job_file;
  api::Mounts mounts;
  std::vector<int> shares{0, 25, 50, 75, 100};  // percent of the micro-batches' stems
  int workers = 1;
  std::optional<int> threads;         // of the server; absent: the cores shared evenly
  std::optional<int> worker_threads;  // of each worker; likewise
  api::DeviceChoice device = api::DeviceChoice::kAuto;  // of the server
  std::optional<int> steps;                             // of each run; absent: usual_steps
  int rounds = 1;
  std::filesystem::path output;  // a folder that is made
};

/// Each once, in the order in which they were given: a run goes by its share.
std::vector<int> distinct(const std::vector<int>& shares);

/// What the names of its runs begin with.
inline constexpr const char* kRunOfSweep = "share-";
/// Its page, in the folder of the runs.
inline constexpr const char* kSweepPage = "sweep.html";

/// Of a run, by the predicted rate: some seconds', 30 at least; of slow steps a minute's, 6 at
/// least.
int usual_steps(double steps_a_second);

/// One run of a sweep.
struct SweepRun {
  std::string cut;
  int share_percent = 0;
  uint32_t away = 0;  // stems of a step; 0: cut Input
  int round = 0;
  int steps = 30;
};
/// The job of that run: with this share, short, without evaluation, and with one checkpoint, at the
/// end, where its other files are.
api::TrainingJob job_of(const api::TrainingJob& job, const SweepRun& run);
/// Removes the weights and the checkpoint that a run of `steps` steps leaves in its `folder`:
/// nobody wants them, and of a large network they fill the disk.
void remove_weights(const std::filesystem::path& folder, int steps);

/// One share, measured and reckoned; images a second.
struct SweepPoint {
  int share_percent = 0;
  uint32_t away = 0;     // stems of a step
  double measured = 0;   // median over the rounds; 0: not run
  double predicted = 0;  // in virtual time, from what this machine measured; median, likewise
  double bound = 0;      // Amdahl, likewise: the device does its part, nothing else takes time
  double stall_percent = 0;
  std::string left_out;  // why nothing was measured
  int steps = 0;         // of each of its runs
  double seconds = 0;    // that these take by the model
};

struct Sweep {
  std::string cut;
  double stem_part = 0;  // of the device's work
  int workers = 0;
  std::vector<SweepPoint> points;
  int exit_status = 0;  // of the first run that failed; 0: none did
};

/// Runs the job once for every share and round on this machine, the rounds in turn, and compares.
/// sweep.json and the page are in options.output from before the first run on, and new after each.
/// A share whose run fails is run no more, and left out where none has measured; what it fails with
/// is told in its log. What is reckoned is of one rank, rates are of all. Throws InvalidInput,
/// IoError, Cancelled.
Sweep sweep(const SweepOptions& options, const api::TrainingJob& job);

/// One JSON object: sweep.json.
std::string to_json(const Sweep& sweep);
/// The sweep in such a text. Throws InvalidInput where it is none; `name`: what to call the text.
Sweep read_sweep(const std::string& text, const std::string& name);
/// The curves and their figures as parts of a page of HTML, and such a page.
std::string sweep_sections(const Sweep& sweep);
std::string sweep_page(const std::string& name, const Sweep& sweep);

}  // namespace outrigger::cli
