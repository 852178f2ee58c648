#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "api/exit_codes.h"
#include "common/clock.h"
#include "feed/coordinator.h"
#include "feed/stall.h"
#include "gpu-server/job/edits.h"
#include "gpu-server/job/job_plan.h"
#include "gpu-server/links/server_feed.h"
#include "gpu-server/report/time_left.h"
#include "telemetry/json_lines.h"
#include "telemetry/metrics.h"
#include "training/evaluation/evaluation.h"
#include "training/planner/model/costs.h"
#include "training/progress.h"
#include "training/trainer/trainer.h"

namespace outrigger::gpu_server {

struct Instruments;

/// Which of the job's servers reports, and of how many.
struct ReportingRank {
  int rank = 0;
  int ranks = 1;
  bool emulated = false;  // nothing is computed there
};

/// Tells what happens: the progress line, metrics.jsonl, audit.jsonl, Prometheus metrics and
/// /status. The trainer's thread reports; any thread may ask for the status.
class Reporter {
 public:
  /// Writes into `directory`, which exists; ranks behind the first to files with their number.
  /// `metrics`, `clock` must outlive this. Metrics count this rank's part of a batch, so that they
  /// may be added over ranks; all else tells of the whole job.
  Reporter(std::string job, const std::filesystem::path& directory, ReportingRank place,
           RunSize size, uint64_t first_step, uint64_t incarnation, telemetry::Metrics& metrics,
           const Clock& clock);
  ~Reporter();

  /// `stalls`: what the device waited for in the step, the optimizer's time left out. `planning`:
  /// what comparing plans took behind it.
  void step(const training::StepReport& report, const FeedSnapshot& feed,
            const feed::StallTimes& stalls, Duration planning = Duration::zero());
  /// What the planner goes by: every layer's costs, as a line of metrics.jsonl.
  void profile(const training::JobCosts& costs);
  /// What layers take while the job trains, here and on workers: moving averages, as a line of
  /// metrics.jsonl.
  void layers(uint64_t step, const nn::Graph& graph, std::span<const LayerSeconds> server,
              std::span<const WorkerMeasures> workers);
  /// What each remote worker has done and how fast it is, as a line of metrics.jsonl.
  void workers(uint64_t step, std::span<const WorkerMeasures> workers, const WorkerMeasures& local);
  /// How many workers the job can use; nothing where none is there to tell what one brings.
  void desired_workers(std::optional<uint32_t> count);
  /// `by`: "server" or "workers".
  void evaluation(uint64_t step, const training::EvaluationResult& result, Duration took,
                  const char* by);
  void checkpoint(uint64_t step, const std::filesystem::path& path, Duration took);
  void replacement(const feed::Replacement& replacement);
  /// `reason`: why this one, for people.
  void plan(const feed::Plan& plan, uint64_t step, const std::string& reason);
  /// The last progress line, when no step follows; none where it would say more steps than all.
  void finish();
  /// The last line of metrics.jsonl: how the run ended, as docs/exit-codes.md calls it, and why.
  void end(api::ExitCode code, const std::string& message = "");
  /// What the run says of itself: "Training", "Evaluating", "Stopping", ….
  void state(const std::string& state);
  /// What the server was told of an edited job; a rank that nobody tells says nothing of it.
  void edits(const Edits& edits);
  /// Thread-safe; one JSON object.
  std::string status_json() const;
  /// The progress in it with evaluation and checkpoint, as last words tell it, and the newest plan
  /// (or another one), likewise.
  std::string progress_json() const;
  std::string plan_json() const;
  std::string plan_json(const feed::Plan& plan) const;

 private:
  void write_audit(const training::StepReport& report);
  /// What a line of a step says besides its report.
  struct StepNotes {
    size_t workers = 0;
    double stall = 0;  // part of the step
    Duration planning{0};
  };
  void write_metrics(const training::StepReport& report, const feed::StallTimes& stalls,
                     const StepNotes& notes);
  void count_stalls(const feed::StallTimes& stalls);
  void show_plan(const feed::Plan& plan);
  /// Both under mutex_.
  nlohmann::json progress_now() const;
  nlohmann::json results() const;
  /// For what ends now and `took` so long: none of it where that was made beside training.
  Duration stood_still(Duration took);
  void show_time_left();

  const std::string job_;
  const Clock& clock_;
  const RunSize size_;
  const int ranks_;
  const bool emulated_;
  const uint64_t incarnation_;
  telemetry::JsonLines metrics_file_;
  telemetry::JsonLines audit_file_;
  std::unique_ptr<Instruments> instruments_;
  training::ProgressLine line_;
  training::Progress progress_;
  TimeLeft time_left_;
  TimePoint stands_since_;  // the end of the newest step, or of what came behind it
  double smooth_step_seconds_ = 0;
  double smooth_loss_ = 0;
  double smooth_accuracy_ = 0;
  double smooth_stall_ = 0;
  feed::StallTimes smooth_stalls_{};  // seconds of a step
  uint64_t steps_here_ = 0;
  bool finished_ = false;
  mutable std::mutex mutex_;  // guards what status_json reads
  training::Progress shown_;
  FeedSnapshot feed_;
  std::string state_ = "Starting";
  feed::Plan plan_;
  std::string plan_reason_;
  std::optional<Edits> edits_;
  std::optional<uint32_t> desired_workers_;
  feed::StallTimes stalled_{};  // since the run began
  std::optional<training::EvaluationResult> evaluated_;
  std::optional<uint64_t> checkpointed_;
};

}  // namespace outrigger::gpu_server
