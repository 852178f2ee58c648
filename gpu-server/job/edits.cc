#include "gpu-server/job/edits.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/parse.h"
#include "api/support.h"
#include "common/error.h"
#include "common/log.h"

namespace outrigger::gpu_server {

ToldJob read_told_job(const std::string& body) {
  const auto told = nlohmann::json::parse(body, nullptr, false);
  if (!told.is_object() || !told.contains("job") || !told.contains("generation") ||
      !told["generation"].is_number_integer())
    throw InvalidInput("an edited job is told as {\"generation\": 2, \"job\": {…}}");
  return {told["generation"].get<int64_t>(), told["job"].dump()};
}

namespace {

/// Workers were told the deepest cut when they joined, and get no more weights than that needs.
void keep_reach(api::TrainingJob& edited, const api::TrainingJob& running, const nn::Graph& graph) {
  if (deepest_cut(edited, graph) <= deepest_cut(running, graph)) return;
  log::warning(
      "spec.split.minServerPercent: {} would open deeper cuts than the run began with; they stay "
      "closed until the server starts again",
      edited.spec.split.min_server_percent);
  edited.spec.split.min_server_percent = running.spec.split.min_server_percent;
}

}  // namespace

api::TrainingJob edited_job(const api::TrainingJob& running, const std::string& told,
                            const nn::Graph& graph, const RunSize& size) {
  auto resolved = api::resolve_training_job(told);
  for (auto& error : resolved.errors) error.line = error.column = 0;  // of a text nobody sees
  if (!resolved.errors.empty()) throw InvalidInput(api::to_string(resolved.errors));
  api::TrainingJob edited = running;
  edited.spec.split = resolved.job.spec.split;
  edited.spec.workers = resolved.job.spec.workers;
  edited.spec.progress_deadline = resolved.job.spec.progress_deadline;
  if (edited.spec.split == running.spec.split) return edited;
  check_reachable(edited.spec.split.cut, running, graph);
  keep_reach(edited, running, graph);
  static_cast<void>(make_plan(edited, graph, size, 0));
  return edited;
}

}  // namespace outrigger::gpu_server
