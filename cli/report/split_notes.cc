#include "cli/report/split_notes.h"

#include <variant>

#include "api/names.h"
#include "api/parse.h"
#include "common/error.h"
#include "common/log.h"
#include "nn/graph.h"
#include "worker/job.h"

namespace outrigger::cli {
namespace {

/// Any will do for a network with a name; one in layers says how many classes it has.
int64_t classes_of(const api::ModelSpec& model) {
  constexpr int64_t kAny = 2;
  if (model.layers.empty()) return kAny;
  const auto* last = std::get_if<api::LinearLayer>(&model.layers.back().kind);
  return last == nullptr ? kAny : last->features;
}

void note_job(const api::TrainingJob& job, const std::string& cut, SplitNotes& notes) {
  const api::SplitSpec& split = job.spec.split;
  notes.cut_is_open = split.cut == api::kCutAuto;
  notes.share_is_open = split.cut != api::kCutInput && !split.share_percent;
  notes.staleness = static_cast<uint64_t>(job.spec.training.staleness);
  const nn::Graph graph = worker::build_graph(job, classes_of(job.spec.model));
  notes.stems_train = !graph.frozen_before(graph.cut(cut).layers);
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
