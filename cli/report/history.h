#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feed/stall.h"

namespace outrigger::cli {

/// What a run's metrics.jsonl tells. Times are seconds.
struct RunHistory {
  /// A step, or some neighbours as one, where a run has very many: the first one's number, sums of
  /// times, means of the rest.
  struct Step {
    uint64_t step = 0;
    uint64_t last_step = 0;
    uint64_t count = 1;          // how many it stands for
    std::optional<double> loss;  // absent: not a number
    std::optional<double> accuracy;
    double images_per_second = 0;
    double seconds = 0;
    double waited = 0;  // for micro-batches and stem gradients
    feed::StallTimes stalls{};
    uint64_t workers = 0;
    uint64_t plan = 0;
  };
  struct Plan {
    uint64_t number = 0;
    uint64_t step = 0;  // when it was decided
    std::string cut;
    uint64_t stems_away = 0;  // of a step
    int share_percent = 0;    // which these are, rounded down
    int local_percent = 0;    // of the pixels that a step needs, made by the server itself
    std::optional<double> server_percent;  // of the multiply-adds; absent: of an older run
    std::string activations;               // how they travel: "float32", "bfloat16", "int8"
    std::string gradients;
    std::string reason;
    /// Whether any stem is away: without one it is cut Input, whatever cut it names.
    bool splits() const { return stems_away > 0 || share_percent > 0; }
    /// As people call it: "pool1 50 %", "cut Input, 75 % of the input local".
    std::string name() const;
  };
  /// What was not measured is absent.
  struct Evaluation {
    uint64_t step = 0;
    std::optional<double> accuracy;
    std::optional<double> loss;
    std::optional<double> verification;
    std::optional<double> identification;
    double stood_still = 0;  // training did, while the server made it; 0: beside training
  };
  struct Checkpoint {
    uint64_t step = 0;
    double stood_still = 0;  // training did, while it was written
  };
  /// Its counts are of all lives of a run that was resumed.
  struct Worker {
    uint64_t micro_batches = 0;
    uint64_t stem_gradients = 0;
    uint32_t cores = 0;
    double decode = 0;  // of a micro-batch
    double bytes_per_second = 0;
    double latency = 0;
    uint64_t incarnation = 0;            // of the run that told this
    uint64_t former_micro_batches = 0;   // of the counts, what was before that
    uint64_t former_stem_gradients = 0;  // likewise
  };
  /// How a run ended, as it said itself.
  struct End {
    std::string state;  // as docs/exit-codes.md calls it
    std::string message;
    uint64_t step = 0;  // how many were done
    bool failed() const { return state != "Done" && state != "Stopped"; }
  };
  /// What a layer costs on a core for one micro-batch. Of a GPU's run only those that stems can
  /// have are told.
  struct Layer {
    std::string name;
    double forward = 0;
    double backward = 0;
    double kept = 0;     // bytes from its forward to its backward
    double weights = 0;  // bytes
    // While the job trained, forward and backward; 0: not timed.
    double on_server = 0;
    double on_workers = 0;  // the mean of those who ran it
  };
  // Of a run that was resumed: what counted in the end.
  std::vector<Step> steps;
  uint64_t steps_in_one = 1;  // that each of these stands for, but perhaps the last
  std::vector<Plan> plans;
  std::vector<Evaluation> evaluations;
  std::vector<Checkpoint> checkpoints;
  std::map<std::string, Worker> workers;    // by name, as last told
  std::optional<Worker> local;              // the server's own, likewise
  std::optional<uint64_t> desired_workers;  // that the job can use, as the planner last reckoned
  std::vector<Layer> layers;                // as measured at the start
  std::optional<End> end;               // absent: it goes on, was killed, or is of an older version
  bool emulated = false;                // nothing was computed
  std::optional<uint64_t> total_steps;  // that it was to do, when it last said so
  uint64_t incarnation = 0;             // of the run that wrote last, which all of its ranks share
  std::vector<RunHistory> further_ranks;  // of it, in order

  /// The steps that count for rates: the first ones compile and warm up.
  std::vector<Step> settled() const;

  /// For what training stood still between two steps, in percent of the time of steps and stops:
  /// what came behind the last step held nothing up.
  struct Stops {
    double evaluation_percent = 0;
    double checkpoint_percent = 0;
  };
  Stops stops() const;
};

/// How many steps these are that may be some as one.
uint64_t step_count(std::span<const RunHistory::Step> steps);

/// Some 40 MB of them, for pictures of 400 points.
constexpr size_t kMostStepsKept = 200'000;

/// Reads `folder`/metrics.jsonl, and of further ranks metrics-1.jsonl and so on, line by line.
/// Lines that are cut off or none of ours are left out, with one warning a file. Where there are
/// more than `most_steps`, neighbours are put together. Throws IoError where a file cannot be
/// read, InvalidInput where all of its lines are broken or the first has no step.
RunHistory read_history(const std::filesystem::path& folder, size_t most_steps = kMostStepsKept);

}  // namespace outrigger::cli
