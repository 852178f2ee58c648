#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "api/exit_codes.h"
#include "api/launch.h"
#include "api/training_job.h"
#include "common/clock.h"
#include "common/thread_pool.h"
#include "data/sample.h"
#include "gpu-server/job_plan.h"
#include "gpu-server/local_worker.h"
#include "gpu-server/reporter.h"
#include "gpu-server/server_feed.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "telemetry/metrics.h"
#include "telemetry/status_server.h"
#include "training/checkpoint.h"
#include "training/evaluation.h"
#include "training/trainer.h"
#include "transport/endpoint.h"
#include "worker/file_pixels.h"

namespace outrigger::gpu_server {

/// One run of one job on this rank: everything it is made of, in the order in which it is made.
/// Lives in run_server.
class Run {
 public:
  Run(const api::Launch& launch, api::TrainingJob job, const std::stop_token& stop,
      std::unique_ptr<transport::Listener> listener, training::Reducer* reducer);
  ~Run();

  /// Trains from the state to the end, to an early stop, or to a stop request. Writes the last
  /// checkpoint and weights.
  api::ExitCode train();

 private:
  training::TrainingState first_state();
  JoinTerms join_terms();
  feed::CoordinatorOptions coordinator_options() const;
  void open_doors();
  void accept_workers(const std::stop_token& over);
  /// Whether any rank wants to stop: they all do so between the same two steps.
  bool agree(bool wish);
  void check_ranks_agree();

  bool due_for_evaluation(uint64_t step) const;
  bool due_for_checkpoint(uint64_t step) const;
  void after_step(const training::StepReport& report);
  /// True where training is to stop early.
  bool evaluate();
  void save_checkpoint();
  void take_over_broken_samples();
  void write_weights() const;
  bool first_rank() const { return launch_.rank == 0; }
  training::CheckpointMetadata metadata() const;

  const api::Launch launch_;
  const api::TrainingJob job_;
  const std::stop_token stop_;
  training::Reducer* const reducer_;
  const SystemClock clock_;
  const std::filesystem::path directory_;
  const std::filesystem::path train_root_;
  const std::filesystem::path validation_root_;
  const data::Dataset train_;
  const data::Dataset validation_;
  const RunSize size_;
  const nn::Graph graph_;
  const std::unique_ptr<nn::Backend> backend_;
  ThreadPool threads_;
  std::optional<training::CheckpointStore> store_;  // only the first rank writes
  training::TrainingState state_;
  telemetry::Metrics metrics_;
  Reporter reporter_;
  worker::FilePixels pixels_;
  ServerFeed feed_;
  LocalWorker local_;
  training::Trainer trainer_;
  training::Evaluator evaluator_;
  const std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<telemetry::StatusServer> pages_;
  std::jthread acceptor_;
  size_t replacements_told_ = 0;
  std::atomic<bool> ready_{false};
  std::atomic<bool> stop_wanted_{false};
  bool stop_early_ = false;
  std::optional<uint64_t> saved_step_;
  std::unique_ptr<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace outrigger::gpu_server
