#include "operator/policy/edits.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/write.h"
#include "operator/objects/children.h"
#include "operator/policy/conditions.h"

namespace outrigger::controller {
namespace {

bool wants_edits(const JobRecord& record) {
  const api::TrainingJob& job = record.job;
  return record.errors.empty() && job.spec.server.engine == api::Engine::kBuiltin &&
         !job.spec.suspend && !job.metadata.deletion_time && !is_finished(*job.status);
}

bool is_first_server(const Pod& pod, const api::TrainingJob& job) {
  return pod.role == api::Role::kServer && pod.index == 0 &&
         pod.attempt == job.status->execution_attempts && pod.job_uid == job.metadata.uid &&
         pod.started && !pod.ended && !pod.deleting;
}

std::string edit_body(const api::TrainingJob& job) {
  nlohmann::ordered_json body;
  body["generation"] = job.metadata.generation.value_or(0);
  body["job"] = api::to_short_json(told_job(job));
  return body.dump();
}

}  // namespace

bool is_behind(const ServerReport& report, const api::TrainingJob& job) {
  return report.told_generation && *report.told_generation < job.metadata.generation.value_or(0);
}

std::optional<Edit> edit_for(const JobRecord& record, const std::vector<Pod>& pods,
                             const Options& options) {
  if (!wants_edits(record)) return std::nullopt;
  const api::TrainingJob& job = record.job;
  const auto server = std::find_if(pods.begin(), pods.end(),
                                   [&](const Pod& pod) { return is_first_server(pod, job); });
  if (server == pods.end()) return std::nullopt;
  return Edit{server->ip, token(options, job.metadata.uid, "control"), edit_body(job)};
}

}  // namespace outrigger::controller
