#include "gpu-server/run_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/names.h"
#include "api/write.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "gpu-server/job/job_options.h"
#include "gpu-server/job/job_plan.h"
#include "gpu-server/job/settings.h"
#include "gpu-server/run_best.h"
#include "nn/cpu/instruction_set.h"
#include "nn/models.h"
#include "nn/weights_file.h"
#include "training/checkpoint/model_card.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

constexpr const char* kInstructionSetKey = "instructionSet";
constexpr const char* kBatchSizeKey = "batchSize";
constexpr const char* kMicroBatchSizeKey = "microBatchSize";
constexpr const char* kSettingsKey = "settings";
constexpr const char* kSamplesKey = "samples";
constexpr const char* kDataKey = "data";
constexpr const char* kSeedKey = "seed";
constexpr const char* kMetricKey = "evaluationMetric";

void impose_instruction_set(const training::CheckpointMetadata& metadata) {
  const auto recorded = metadata.find(kInstructionSetKey);
  if (recorded == metadata.end()) return;
  if (nn::cpu::has_instruction_set(recorded->second)) {
    nn::cpu::set_instruction_set(recorded->second);
    return;
  }
  log::warning(
      "the run was computed with {}, which this machine lacks; results will differ in the last "
      "bits",
      recorded->second);
}

std::string class_at(const std::vector<std::string>& classes, size_t label) {
  return label < classes.size() ? "\"" + classes[label] + "\"" : "no class";
}

/// Labels are numbers: with other classes behind them the run would go on, and learn what is wrong.
void refuse_other_classes(const training::Checkpoint& found,
                          const training::CheckpointMetadata& own) {
  const auto before = training::card_of(found.metadata, found.path.string()).classes;
  const auto now = training::card_of(own, "this run").classes;
  if (before.empty() || before == now) return;
  const auto differs = std::ranges::mismatch(before, now).in1 - before.begin();
  const auto label = static_cast<size_t>(differs);
  throw InvalidInput(found.path.string() + " is of other classes than spec.data.train has: label " +
                     std::to_string(label) + " was " + class_at(before, label) + " and is " +
                     class_at(now, label) + "; give it the folders that it was trained with, or " +
                     "begin anew in another folder");
}

/// What `found` has under the key where the run has something else; nothing where it does not say,
/// as those of older versions.
std::optional<std::string> former_value(const training::CheckpointMetadata& found,
                                        const training::CheckpointMetadata& own, const char* key) {
  const auto recorded = found.find(key);
  if (recorded == found.end() || recorded->second == own.at(key)) return std::nullopt;
  return recorded->second;
}

void warn_of_settings(const training::Checkpoint& found, const training::CheckpointMetadata& own) {
  const auto former = former_value(found.metadata, own, kSettingsKey);
  if (!former) return;
  std::string names;
  for (const std::string& name : changed_settings(*former, own.at(kSettingsKey)))
    names += (names.empty() ? "" : ", ") + name;
  if (!names.empty())
    log::warning("not as they were up to step {}: {}: the run will not be one with either",
                 found.state.step, names);
}

/// A file that the job names and that is not there will not come by trying again.
std::filesystem::path weights_file(const api::TrainingJob& job, const api::Launch& launch) {
  auto path = api::data_path(job, launch, *job.spec.model.weights);
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    throw InvalidInput("spec.model.weights: " + path.string() + ": no such file");
  return path;
}

}  // namespace

int64_t averaged_micro_batches(const api::TrainingJob& job, uint64_t step) {
  const int64_t of_all = job.spec.training.batch_size / worker::micro_batch(job);
  const int64_t ranks = api::rank_count(job.spec);
  return static_cast<int64_t>(step) *
         (job.spec.training.sync_every_steps > 1 ? of_all / ranks : of_all);
}

RunFiles::RunFiles(const api::TrainingJob& job, const api::Launch& launch, const nn::Graph& graph,
                   const data::Dataset& train)
    : job_(job),
      launch_(launch),
      graph_(graph),
      train_(train),
      data_(train.fingerprint()),
      checkpoints_(api::checkpoint_directory(job, launch)) {
  if (job.spec.training.evaluate) metric_ = api::to_string(job.spec.training.evaluate->metric);
  if (launch.rank == 0) {
    // Before the store, which tidies up and claims: a start that is refused changes nothing.
    if (!launch.resume) refuse_former_run();
    store_.emplace(checkpoints_,
                   training::CheckpointOptions{job.spec.checkpoint.keep, launch.attempt});
  }
}

void RunFiles::refuse_former_run() const {
  const auto found = training::load_newest_checkpoint(checkpoints_, graph_);
  if (!found) return;
  throw InvalidInput(
      found->path.string() +
      " is a checkpoint of a former run: give --resume to go on from it, or remove " +
      checkpoints_.string());
}

training::TrainingState RunFiles::first_state() {
  if (!launch_.resume) return fresh_state();
  auto found =
      store_ ? store_->load_newest(graph_) : training::load_newest_checkpoint(checkpoints_, graph_);
  if (!found) return fresh_state();
  compare_with(*found);
  impose_instruction_set(found->metadata);
  ++found->state.incarnation;
  saved_step_ = found->state.step;
  log::info("resuming from {} at step {}", found->path.string(), found->state.step);
  return std::move(found->state);
}

void RunFiles::compare_with(training::Checkpoint& found) {
  const auto own = metadata();
  refuse_other_classes(found, own);
  const auto tell = [&](const char* what, const std::string& former, const char* key) {
    log::warning("{} was {} up to step {} and is {} now: the run will not be one with either", what,
                 former, found.state.step, own.at(key));
  };
  if (const auto size = former_value(found.metadata, own, kBatchSizeKey))
    tell("spec.training.batchSize", *size, kBatchSizeKey);
  if (const auto size = former_value(found.metadata, own, kMicroBatchSizeKey))
    tell("spec.training.microBatchSize, over which batch norm takes its statistics,", *size,
         kMicroBatchSizeKey);
  if (const auto seed = former_value(found.metadata, own, kSeedKey))
    tell("spec.training.seed", *seed, kSeedKey);
  reconcile_samples(found, own);
  warn_of_settings(found, own);
  reconcile_average(found.state);
  if (found.state.evaluating != nullptr) reconcile_average(*found.state.evaluating);
  reconcile_metric(found);
}

// Samples are known by their numbers, which are others' in another listing.
void RunFiles::reconcile_samples(training::Checkpoint& found,
                                 const training::CheckpointMetadata& own) {
  const auto size = former_value(found.metadata, own, kSamplesKey);
  if (!size && !former_value(found.metadata, own, kDataKey)) return;
  log::warning(
      "spec.data.train lists other samples than up to step {}, {} then and {} now: the run will "
      "not be one with either",
      found.state.step, size.value_or(own.at(kSamplesKey)), own.at(kSamplesKey));
  if (!found.state.bad_samples.empty())
    log::warning("which {} samples were broken is forgotten: their numbers are others' now",
                 found.state.bad_samples.size());
  found.state.bad_samples.clear();
}

void RunFiles::reconcile_average(training::TrainingState& found) const {
  const bool wanted = job_.spec.training.average_weights.has_value();
  if (wanted == !found.averaged.empty()) return;
  if (wanted) {
    log::warning(
        "spec.training.averageWeights is new: the average begins with the weights of step {}",
        found.step);
    found.averaged = found.parameters;
  } else {
    log::warning(
        "spec.training.averageWeights is gone: the average up to step {} is forgotten, and the "
        "weights themselves are evaluated and handed out",
        found.step);
    found.averaged.clear();
  }
}

void RunFiles::reconcile_metric(training::Checkpoint& found) {
  const auto recorded = found.metadata.find(kMetricKey);
  if (recorded == found.metadata.end()) return;  // as in those of older versions
  if (metric_.empty()) metric_ = recorded->second;
  if (metric_ == recorded->second) return;
  if (found.state.best_step >= 0)
    log::warning(
        "spec.training.evaluate.metric was {} up to step {} and is {} now: which weights were the "
        "best is forgotten",
        recorded->second, found.state.step, metric_);
  forget_best(found.state);
  if (found.state.evaluating != nullptr) forget_best(*found.state.evaluating);
}

training::TrainingState RunFiles::fresh_state() const {
  training::TrainingState state;
  state.incarnation = 1;
  state.parameters.resize(static_cast<size_t>(graph_.parameter_count()));
  state.momentum.resize(state.parameters.size());
  state.buffers.resize(static_cast<size_t>(graph_.buffer_count()));
  nn::initialize(graph_, worker::seed(job_), state.parameters, state.buffers);
  if (job_.spec.model.weights) {
    const auto path = weights_file(job_, launch_);
    nn::load_weights(path, graph_, {job_.spec.model.replace_head}, state.parameters, state.buffers);
    log::info("weights from {}", path.string());
  } else if (job_.spec.model.freeze_until && launch_.rank == 0) {
    log::warning(
        "spec.model.freezeUntil: the layers up to {} keep weights that nobody trained, drawn at "
        "random, for there are no spec.model.weights",
        *job_.spec.model.freeze_until);
  }
  if (job_.spec.training.average_weights) state.averaged = state.parameters;
  return state;
}

bool RunFiles::checkpoint_due(uint64_t step) const { return store_ && is_checkpoint_step(step); }

bool RunFiles::is_checkpoint_step(uint64_t step) const {
  const auto every = static_cast<uint64_t>(job_.spec.checkpoint.every_steps);
  return step / every > step_synchronized_before(job_, step) / every;
}

bool RunFiles::save(const training::TrainingState& state) {
  if (!store_ || saved_step_ == state.step) return false;
  store_->save(state, graph_, metadata());
  saved_step_ = state.step;
  return true;
}

void RunFiles::save_best(const training::TrainingState& state) {
  store_->save_best(state, graph_, metadata());
}

training::CheckpointMetadata RunFiles::metadata() const {
  auto metadata = training::to_metadata(model_card(job_, train_.classes()), graph_);
  metadata[kInstructionSetKey] = nn::cpu::instruction_set();
  metadata[kBatchSizeKey] = std::to_string(job_.spec.training.batch_size);
  metadata[kMicroBatchSizeKey] = std::to_string(worker::micro_batch(job_));
  metadata[kSettingsKey] = settings_of(job_);
  metadata[kSamplesKey] = std::to_string(train_.size());
  metadata[kDataKey] = to_hex(data_);
  metadata[kSeedKey] = std::to_string(worker::seed(job_));
  if (!metric_.empty()) metadata[kMetricKey] = metric_;
  return metadata;
}

void RunFiles::write_weights(const training::TrainingState& state) const {
  if (!store_) return;
  const auto directory = api::run_directory(job_, launch_);
  const auto path = directory / "weights.safetensors";
  const auto beside = directory / ".weights.safetensors.tmp";
  nn::save_weights(beside, graph_, graph_.whole(),
                   {state.averaged.empty() ? state.parameters : state.averaged, state.buffers,
                    averaged_micro_batches(job_, state.step)},
                   metadata());
  std::filesystem::rename(beside, path);
  log::info("weights: {}", path.string());
}

void RunFiles::write_job() const {
  if (!store_) return;
  write_file_atomically(api::run_directory(job_, launch_) / api::kJobFileName, api::to_yaml(job_));
}

}  // namespace outrigger::gpu_server
