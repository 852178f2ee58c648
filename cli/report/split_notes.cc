#include "cli/report/split_notes.h"

#include "api/names.h"
#include "api/parse.h"
#include "cli/network.h"
#include "common/error.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

void note_job(const api::TrainingJob& job, const std::string& cut, SplitNotes& notes) {
  const api::SplitSpec& split = job.spec.split;
  notes.cut_is_open = split.cut == api::kCutAuto;
  notes.share_is_open = split.cut != api::kCutInput && !split.share_percent;
  notes.staleness = static_cast<uint64_t>(job.spec.training.staleness);
  const auto network = network_of(job);
  if (network) notes.stems_train = !network->frozen_before(network->cut(cut).layers);
}

}  // namespace

SplitNotes split_notes(const RunHistory& history, const std::filesystem::path& folder) {
  SplitNotes notes;
  if (history.plans.empty()) return notes;
  const RunHistory::Plan& plan = history.plans.back();
  notes.stems_away = plan.splits();
  notes.activations = plan.activations;
  notes.gradients = plan.gradients;
  const auto file = folder / api::kJobFileName;
  if (!std::filesystem::exists(file)) return notes;
  try {
    note_job(api::load_training_job(file), plan.cut, notes);
  } catch (const InvalidInput& error) {
    log::warning("the report's advice goes without the job: {}", error.what());
  }
  return notes;
}

}  // namespace outrigger::cli
