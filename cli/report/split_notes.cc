#include "cli/report/split_notes.h"

#include "api/names.h"
#include "api/parse.h"
#include "cli/network.h"
#include "common/error.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

/// `outrigger run` keeps the logs of its further servers in the run's folder; nobody else does.
bool ran_here(const RunHistory& history, const std::filesystem::path& folder) {
  return !history.further_ranks.empty() && std::filesystem::exists(folder / "server-1.log");
}

void note_training(const api::TrainingSpec& training, SplitNotes& notes) {
  notes.staleness = static_cast<uint64_t>(training.staleness);
  notes.ranks_step_alone = training.sync_every_steps > 1;
  notes.sums_are_bfloat16 = training.all_reduce_precision == api::AllReducePrecision::kBFloat16;
  if (training.steps) notes.steps = static_cast<uint64_t>(*training.steps);
  if (!training.evaluate) return;
  notes.stops_early = training.evaluate->stop_after_no_gain.has_value();
  notes.workers_evaluate = training.evaluate->place == api::EvaluationPlace::kWorkers;
}

void note_job(const api::TrainingJob& job, SplitNotes& notes) {
  const api::SplitSpec& split = job.spec.split;
  notes.cut_is_open = split.cut == api::kCutAuto;
  notes.share_is_open = split.cut != api::kCutInput && !split.share_percent;
  note_training(job.spec.training, notes);
  if (job.spec.server.gpus > 0) notes.ranks_share_cores = false;
}

void note_cut(const api::TrainingJob& job, const std::string& cut, SplitNotes& notes) {
  const auto network = network_of(job);
  if (network) notes.stems_train = !network->frozen_before(network->cut(cut).layers);
}

void note_plan(const RunHistory::Plan& plan, SplitNotes& notes) {
  notes.stems_away = plan.splits();
  notes.activations = plan.activations;
  notes.gradients = plan.gradients;
}

}  // namespace

SplitNotes split_notes(const RunHistory& history, const std::filesystem::path& folder) {
  SplitNotes notes{.ranks_share_cores = ran_here(history, folder)};
  const bool planned = !history.plans.empty();
  if (planned) note_plan(history.plans.back(), notes);
  const auto file = folder / api::kJobFileName;
  if (!std::filesystem::exists(file)) return notes;
  try {
    const api::TrainingJob job = api::load_training_job(file);
    note_job(job, notes);
    if (planned) note_cut(job, history.plans.back().cut, notes);
  } catch (const InvalidInput& error) {
    log::warning("the report's advice goes without the job: {}", error.what());
  }
  return notes;
}

}  // namespace outrigger::cli
