#include "operator/policy/edits.h"

#include <nlohmann/json.hpp>

#include "api/write.h"
#include "operator/objects/children.h"
#include "operator/policy/conditions.h"
#include "operator/policy/pods.h"

namespace outrigger::controller {
namespace {

bool wants_edits(const JobRecord& record) {
  const api::TrainingJob& job = record.job;
  return record.errors.empty() && job.spec.server.engine == api::Engine::kBuiltin &&
         !job.spec.suspend && !job.metadata.deletion_time && !is_finished(*job.status);
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
  const Pod* server = running_first_server(pods, job.metadata.uid);
  if (server == nullptr || server->deleting || server->attempt != job.status->execution_attempts)
    return std::nullopt;
  return Edit{server->ip, token(options, job.metadata.uid, "control"), edit_body(job)};
}

}  // namespace outrigger::controller
