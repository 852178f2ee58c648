#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "api/exit_codes.h"
#include "api/launch.h"
#include "api/training_job.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/thread_pool.h"
#include "common/watchdog.h"
#include "data/sample.h"
#include "gpu-server/device/device.h"
#include "gpu-server/device/gpu_phases.h"
#include "gpu-server/device/shared_cores.h"
#include "gpu-server/job/job_plan.h"
#include "gpu-server/links/local_worker.h"
#include "gpu-server/links/server_feed.h"
#include "gpu-server/planning/evaluation_placement.h"
#include "gpu-server/planning/planning.h"
#include "gpu-server/ranks/agreement.h"
#include "gpu-server/ranks/broken_samples.h"
#include "gpu-server/ranks/traced_reducer.h"
#include "gpu-server/report/reporter.h"
#include "gpu-server/report/workers_pace.h"
#include "gpu-server/run_files.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "telemetry/metrics.h"
#include "telemetry/status_server.h"
#include "telemetry/trace.h"
#include "training/evaluation/evaluation.h"
#include "training/trainer/trainer.h"
#include "transport/endpoint.h"
#include "worker/work/agent.h"

namespace outrigger::gpu_server {

/// One run of one job on this rank: everything it is made of, in the order in which it is made.
/// Lives in run_server.
class Run {
 public:
  Run(const api::Launch& launch, api::TrainingJob job, const std::stop_token& stop,
      std::unique_ptr<transport::Listener> listener, training::Reducer* reducer, OpenDevice device);
  ~Run();

  /// Trains from the state to the end, to an early stop, or to a stop request. Writes the last
  /// checkpoint and weights. However it ends, metrics.jsonl gets a line that says how.
  api::ExitCode train();
  /// How far it is, as the JSON object in /status. Thread-safe.
  std::string progress() const { return reporter_.progress_json(); }

 private:
  void open_doors();
  void accept_workers(const std::stop_token& over);
  /// Asks to stop after the present step; returns at once. Any thread.
  void want_stop();
  /// Takes a wish for another plan, as POST /plan has it; any thread. InvalidInput.
  std::string want_plan(const std::string& split);
  /// Takes the job as it was edited, as POST /job has it; any thread. InvalidInput.
  std::string want_edit(const std::string& body);
  /// The trainer's thread does what an edit asks for.
  void take_edit();
  /// Measures what plans cost, where anybody wants a plan found.
  void plan_from_now_on();
  /// Nothing where the device cannot be measured.
  std::optional<PlannedDevice> planned_device();
  void plan_ahead(const training::StepReport& report, const RankMeasures& measures);
  void tell_of_workers(const training::StepReport& report, const RankMeasures& measures);
  /// Of workers and layers as they were in the last step, wherever that was; ends the progress
  /// line.
  void tell_of_the_end();
  /// The first rank hears now and then how the others get on.
  void hear_ranks();
  /// Warns, once, where a plan leaves workers nothing to level.
  void advise(const feed::Plan& plan);
  /// Where stems of the plan in force are to run on workers and none of these is given any.
  void warn_of_stems(const feed::Plan& plan, const FeedSnapshot& feed);
  void tell_of_plan();
  /// Of a plan that somebody asked for.
  void warn_of_memory(const feed::Plan& plan);
  /// Who asks for a plan: what a person or an edit says goes before what the planner finds.
  enum class Wisher { kPlanner, kPerson, kEdit };
  void wish(feed::Plan plan, const std::string& reason, Wisher wisher);
  /// Finds plans for the job as it is edited now, or no longer does.
  void follow_edit(const api::TrainingJob& before);
  feed::Plan first_plan();
  /// What a checkpoint says of the plan, where a planner found it.
  std::optional<training::FoundPlan> found_plan();
  /// Sets all that follows from a plan's cut and share.
  void complete(feed::Plan& plan);
  feed::StemMemory stem_memory_of(int32_t cut);
  /// The plan to go to after an edit of spec.split.
  feed::Plan plan_of_edit();
  std::unique_ptr<Watchdog> make_watchdog();
  Duration patience() const;

  api::ExitCode begin_and_train();
  void train_to_the_end();
  /// What all ranks do before the next step.
  Wishes settle();
  void after_step(const training::StepReport& told);
  /// Whether the first rank evaluates, or saves, behind this step; all ranks say the same.
  bool due_for_evaluation(uint64_t step) const;
  bool state_is_wanted(uint64_t step) const;
  void evaluate_if_due();
  /// While it lives, what the first rank alone has to do behind this step may take its time; none
  /// where nobody waits for it: behind the last step the others end.
  std::unique_ptr<KeepWaiting> keep_others_waiting();
  void evaluate_here();
  /// By the server. Nothing where several ranks are to stop: they do so together, at the next
  /// settle(), and the evaluation is left due to the run that goes on.
  std::optional<training::EvaluationResult> evaluate(const training::TrainingState& state);
  /// Workers begin to evaluate the state beside training.
  void begin_evaluation_beside(std::shared_ptr<training::TrainingState> state);
  /// Goes on with the one that the run before was stopped in, if the job still evaluates.
  void resume_evaluation_beside();
  /// Takes the result of the evaluation beside training, if there is one: as soon as it is there,
  /// or, with `wait`, now. Then the server makes it itself where workers do not get on.
  void end_evaluation_beside(bool wait);
  /// What workers have scored; nothing where the server is to make it instead.
  std::optional<training::EvaluationResult> scores();
  /// Notes what the state's weights came to, and keeps them where they are the best.
  void judge(training::TrainingState& state, const training::EvaluationResult& result,
             Duration took, const char* by);
  /// No gain for as many evaluations as the job allows: training is to stop early.
  bool without_gain() const;
  void save_checkpoint();
  void take_over_broken_samples();
  void write_trace() const;
  api::ExitCode complete();
  api::ExitCode stopped();
  bool first_rank() const { return launch_.rank == 0; }
  /// And shares them with the local worker.
  bool device_is_cores() const { return !device_.is_gpu && device_.emulation == nullptr; }

  const api::Launch launch_;
  const api::TrainingJob job_;
  api::TrainingJob edited_;  // with what may change meanwhile; set by the trainer's thread,
                             // under wish_mutex_
  const std::stop_token stop_;
  training::Reducer* const reducer_;
  Agreement agreement_;
  const SystemClock clock_;
  const std::filesystem::path directory_;
  const std::filesystem::path train_root_;
  const std::filesystem::path validation_root_;
  const data::Dataset train_;
  const data::Dataset validation_;
  const RunSize size_;
  const nn::Graph graph_;
  const OpenDevice device_;                 // trains and evaluates
  const std::unique_ptr<nn::Backend> cpu_;  // the local worker's
  ThreadPool threads_;
  // For the job, before its arrays are made; ranks of one machine share it.
  const uint64_t free_memory_ =
      free_memory() / static_cast<uint64_t>(api::ranks_on_machine(job_, launch_));
  RunFiles files_;
  training::TrainingState state_;  // until the trainer has it
  BrokenSamples broken_;
  std::map<int32_t, feed::StemMemory> stem_memory_;  // by cut, of those that plans had
  feed::Plan plan_;                                  // the newest that was set
  std::optional<Planning> planning_;
  telemetry::Metrics metrics_;
  const std::unique_ptr<telemetry::GpuMetrics> gpu_metrics_;  // null on the CPU
  std::optional<GpuPhases> gpu_phases_;                       // likewise none
  telemetry::Trace trace_;
  const std::unique_ptr<TracedReducer> traced_reducer_;  // null: there is one rank
  Reporter reporter_;
  const std::unique_ptr<worker::PixelSource> pixels_;
  std::stop_source evaluation_stop_;
  ServerFeed feed_;
  LocalWorker local_;
  training::Trainer trainer_;
  training::Evaluator evaluator_;
  EvaluationPlacement evaluation_placement_;
  EvaluationLoss evaluation_loss_;
  std::optional<SharedCores> shared_cores_;  // where the device is cores
  size_t scorers_ = 0;                       // when the evaluation beside training began
  TimePoint scoring_since_{};                // likewise
  const std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<telemetry::StatusServer> pages_;
  std::jthread acceptor_;
  std::unique_ptr<Watchdog> watchdog_;
  RankMeasures measured_;  // in the last step
  uint64_t settled_ = 0;   // times that all ranks have agreed while the first one found plans
  size_t replacements_told_ = 0;
  std::optional<TimePoint> workers_told_, layers_told_;
  WorkersPace workers_pace_;
  bool advised_ = false;
  uint64_t warned_of_ = 0;  // the plan whose stems no worker is given
  std::atomic<bool> ready_{false};
  std::atomic<bool> stop_wanted_{false};
  std::mutex wish_mutex_;
  bool plan_fixed_ = false;  // likewise: somebody asked for a plan, and the planner rests
  std::optional<feed::Plan> wanted_plan_;        // under wish_mutex_
  std::string wanted_reason_;                    // likewise, of the newest wish
  std::optional<api::TrainingJob> wanted_edit_;  // likewise
  uint64_t last_plan_ = 1;                       // likewise, the number given out last
  std::unique_ptr<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace outrigger::gpu_server
