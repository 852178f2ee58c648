#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/parse.h"
#include "api/support.h"
#include "api/write.h"
#include "common/error.h"
#include "gpu-server/job/job_plan.h"

namespace outrigger::gpu_server {
namespace {

constexpr const char* kLocal = "localInputPercent";

nlohmann::json parsed(const std::string& split) {
  auto fields = nlohmann::json::parse(split, nullptr, false);
  if (!fields.is_object()) {
    throw InvalidInput(
        "a plan is a JSON object with fields of spec.split, and localInputPercent, such as "
        R"({"cut": "layer1", "sharePercent": 50})");
  }
  return fields;
}

/// Takes out how much of the input the server is to make itself, which is no field of spec.split:
/// 0 where it is not said.
double take_local_percent(nlohmann::json& fields) {
  const auto found = fields.find(kLocal);
  if (found == fields.end()) return 0;
  const double percent = found->is_number() ? found->get<double>() : -1;
  if (!(percent >= 0 && percent <= 100))
    throw InvalidInput(std::string(kLocal) + ": " + found->dump() +
                       " is not allowed; a number from 0 to 100 is needed");
  fields.erase(found);
  return percent;
}

/// `job` with these fields of spec.split, and without a bound that is for plans to be found.
api::TrainingJob with_split(const api::TrainingJob& job, nlohmann::json fields) {
  fields.emplace("maxBytesPerSecond", nullptr);
  nlohmann::json whole = api::to_json(job);
  whole["spec"]["split"].merge_patch(fields);
  auto resolved = api::resolve_training_job(whole.dump());
  auto errors = std::move(resolved.errors);
  if (errors.empty()) {
    errors = api::check_supported(resolved.job, {});
    // The job runs already: only what is asked now can be too much.
    std::erase_if(errors, [](const auto& error) { return !error.path.starts_with("spec.split"); });
  }
  for (auto& error : errors) error.line = error.column = 0;  // places in a text that nobody sees
  if (!errors.empty()) throw InvalidInput(api::to_string(errors));
  return std::move(resolved.job);
}

}  // namespace

void check_reachable(const std::string& cut, const api::TrainingJob& job, const nn::Graph& graph) {
  const int32_t deepest = deepest_cut(job, graph);
  if (cut == api::kCutAuto || graph.cut(cut).layers <= deepest) return;
  throw InvalidInput("spec.split.cut: '" + cut +
                     "' leaves the server less than half of the multiply-adds; the deepest cut "
                     "that a run can move to is '" +
                     graph.cut_at(deepest).name + "'");
}

feed::Plan asked_plan(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                      const std::string& split) {
  nlohmann::json fields = parsed(split);
  const double local = take_local_percent(fields);
  const api::TrainingJob asked = with_split(job, std::move(fields));
  const std::string& cut = asked.spec.split.cut;
  if (cut == api::kCutAuto)
    throw InvalidInput("spec.split.cut: Auto is no plan; write Input or a layer");
  if (cut != api::kCutInput && !asked.spec.split.share_percent)
    throw InvalidInput("spec.split.sharePercent: missing; a plan behind '" + cut + "' needs it");
  check_reachable(cut, job, graph);
  feed::Plan plan = make_plan(asked, graph, size, 0);
  plan.local_inputs =
      static_cast<uint32_t>(std::lround(local / 100 * (size.micro_batches - plan.stems_away)));
  return plan;
}

}  // namespace outrigger::gpu_server
