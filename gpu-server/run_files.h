#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "api/launch.h"
#include "api/training_job.h"
#include "common/hash.h"
#include "data/sample.h"
#include "nn/graph.h"
#include "training/checkpoint/checkpoint.h"
#include "training/state.h"

namespace outrigger::gpu_server {

/// The micro-batches that went into running averages by that step: those of all ranks, or, where
/// ranks step by themselves and take the mean of theirs, of one.
int64_t averaged_micro_batches(const api::TrainingJob& job, uint64_t step);

/// What a run leaves on disk: the job as resolved, checkpoints, the best, and the final weights.
/// Only the first rank writes; every rank reads. Not thread-safe.
class RunFiles {
 public:
  /// References must outlive this; the classes of `train` name the model's outputs. Claims the
  /// checkpoints for this attempt: throws training::Superseded where a later one has them, and,
  /// before it touches anything, InvalidInput where some are there and the launch does not resume.
  RunFiles(const api::TrainingJob& job, const api::Launch& launch, const nn::Graph& graph,
           const data::Dataset& train);

  /// What the run starts from: the newest checkpoint where the launch resumes (its instruction set
  /// is imposed where this machine has it), else fresh weights or those of the job's file. Comes
  /// before the first program. Throws InvalidInput where the checkpoint's labels mean other
  /// classes; warns of what else has changed: an average of weights begins anew where the job has
  /// none before, the best is forgotten where it was so by another metric, and so are broken
  /// samples where the data lists others.
  training::TrainingState first_state();

  /// Whether this rank saves behind this step, and whether any does.
  bool checkpoint_due(uint64_t step) const;
  bool is_checkpoint_step(uint64_t step) const;
  /// False where there is nothing to do: another rank's business, or saved before.
  bool save(const training::TrainingState& state);
  void save_best(const training::TrainingState& state);
  /// weights.safetensors in the run's folder.
  void write_weights(const training::TrainingState& state) const;
  void write_job() const;

  /// Of the data that it trains on (data::Dataset::fingerprint).
  const Sha256& data() const { return data_; }
  std::optional<uint64_t> saved_step() const { return saved_step_; }
  std::filesystem::path saved_path() const { return store_->step_path(saved_step_.value_or(0)); }

 private:
  void refuse_former_run() const;
  training::TrainingState fresh_state() const;
  void compare_with(training::Checkpoint& found);
  void reconcile_samples(training::Checkpoint& found, const training::CheckpointMetadata& own);
  void reconcile_average(training::TrainingState& found) const;
  void reconcile_metric(training::Checkpoint& found);
  training::CheckpointMetadata metadata() const;

  const api::TrainingJob& job_;
  const api::Launch& launch_;
  const nn::Graph& graph_;
  const data::Dataset& train_;
  const Sha256 data_;
  const std::filesystem::path checkpoints_;
  std::optional<training::CheckpointStore> store_;  // of the first rank
  std::optional<uint64_t> saved_step_;
  std::string metric_;  // by which the state's best is the best; empty: not known
};

}  // namespace outrigger::gpu_server
