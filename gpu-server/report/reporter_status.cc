#include <algorithm>

#include "gpu-server/report/report_json.h"
#include "gpu-server/report/reporter.h"

// What a run says of itself to whoever asks.
namespace outrigger::gpu_server {

using nlohmann::json;

std::string Reporter::plan_json() const {
  const std::scoped_lock lock(mutex_);
  return plan_json(plan_);
}

std::string Reporter::plan_json(const feed::Plan& plan) const {
  return text_of(to_json(plan, size_.micro_batches));
}

json Reporter::progress_now() const {
  json progress{
      {"epoch", shown_.epoch},
      {"step", shown_.step},
      {"totalSteps", size_.total_steps},
      {"percent",
       std::min(100.0, 100.0 * static_cast<double>(shown_.step) /
                           static_cast<double>(std::max<uint64_t>(1, size_.total_steps)))}};
  if (shown_.images_per_second) progress["samplesPerSecond"] = *shown_.images_per_second;
  if (shown_.time_left) progress["remainingSeconds"] = to_seconds(*shown_.time_left);
  if (shown_.loss) progress["loss"] = *shown_.loss;
  if (shown_.accuracy) progress["accuracy"] = *shown_.accuracy;
  return progress;
}

json Reporter::results() const {
  json results = json::object();
  if (evaluated_) results["evaluation"] = to_json(*evaluated_);
  if (checkpointed_) results["checkpoint"] = {{"step", *checkpointed_}};
  return results;
}

std::string Reporter::progress_json() const {
  const std::scoped_lock lock(mutex_);
  json progress = progress_now();
  progress.update(results());
  return text_of(progress);
}

std::string Reporter::status_json() const {
  const std::scoped_lock lock(mutex_);
  json status{{"role", "server"},
              {"job", job_},
              {"state", state_},
              {"incarnation", incarnation_},
              {"progress", progress_now()},
              {"split",
               {{"plan", plan_.number},
                {"cut", plan_.cut_name},
                {"sharePercent", 100 * plan_.stems_away / size_.micro_batches},
                {"localInputPercent", plan_.local_percent(size_.micro_batches)},
                {"serverPercent", plan_.server_percent(size_.micro_batches)},
                {"reason", plan_reason_},
                {"stallPercent", shown_.stall_percent.value_or(0)},
                {"stallCause", shown_.stall_cause},
                {"stallSeconds", to_json(stalled_)}}},
              {"workers", {{"joined", feed_.workers}, {"names", feed_.worker_names}}},
              {"feed",
               {{"secondLeases", feed_.second_leases},
                {"droppedResults", feed_.dropped_results},
                {"replacedSamples", feed_.replaced_samples},
                {"bytesIn", feed_.bytes_in},
                {"bytesOut", feed_.bytes_out}}}};
  if (desired_workers_) status["workers"]["desired"] = *desired_workers_;
  status.update(results());
  if (edits_) status["edits"] = {{"generation", edits_->generation}, {"refused", edits_->refused}};
  return text_of(status);
}

}  // namespace outrigger::gpu_server
