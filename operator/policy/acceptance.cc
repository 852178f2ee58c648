#include <string>

#include "api/names.h"
#include "api/support.h"
#include "operator/policy/conditions.h"
#include "operator/policy/ends.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/restarts.h"

namespace outrigger::controller {
namespace {

// Ranks of one pod take joins and show their status at ports in a row.
bool ports_fit(const api::TrainingJobSpec& spec) {
  const int first = spec.network.port;
  const int ranks = api::ranks_per_pod(spec);
  constexpr int kBehindLast = 65536;
  return first + ranks <= kBehindLast &&
         (ranks == 1 || first + ranks <= api::kStatusPort || api::kStatusPort + ranks <= first);
}

}  // namespace

std::vector<api::FieldError> not_supported(const Pass& pass) {
  const auto& spec = pass.spec;
  const bool builtin = spec.server.engine == api::Engine::kBuiltin;
  auto errors =
      api::check_supported(pass.seen.job, {.cluster = true, .gpu = pass.options.gpu || !builtin});
  if (!ports_fit(spec)) {
    const std::string more = std::to_string(api::ranks_per_pod(spec) - 1);
    errors.push_back({"spec.network.port", std::to_string(spec.network.port) +
                                               ": the ranks of a pod take this port and " + more +
                                               " behind it, up to 65535, and none of " +
                                               std::to_string(api::kStatusPort) + " and " + more +
                                               " behind it, which show their status"});
  }
  if (!spec.output.path.starts_with('/')) {
    errors.push_back(
        {"spec.output.path", "a pod's folder is at a path that begins with /, like /output"});
  }
  if (spec.checkpoint.path && !spec.checkpoint.path->starts_with('/')) {
    errors.push_back({"spec.checkpoint.path",
                      "a pod's folder is at a path that begins with /, like /checkpoints"});
  }
  if (pass.seen.job.metadata.labels.contains(std::string(api::kQueueNameLabel))) {
    errors.push_back(
        {"metadata.labels", "take " + std::string(api::kQueueNameLabel) +
                                " off and name the queue in spec.schedulingPolicy.queue"});
  }
  return errors;
}

namespace {

// The reason of a refusal that trying again does not mend; null for others.
const char* final_reason(RefusalCause cause) {
  switch (cause) {
    case RefusalCause::kInvalid:
      return "InvalidPod";
    case RefusalCause::kPodSecurity:
      return "PodSecurity";
    case RefusalCause::kForeign:
      return "NameCollision";
    default:
      return nullptr;
  }
}

// Only servers fail a job that has run, or began anew: a policy that somebody put on its namespace
// meanwhile costs it workers, or the time until its Service is taken, and no more. What waits for
// its first attempt in a queue has not run, whatever its Running says.
bool is_final(const Pass& pass, const Refusal& refusal) {
  const auto& status = pass.plan.status;
  const int attempts = status.execution_attempts;
  const bool ran = attempts > 1 || (attempts == 1 && has_run(status));
  return final_reason(refusal.cause) != nullptr && (refusal.role == api::Role::kServer || !ran);
}

bool has_begun_once(const Pass& pass) {
  return pass.plan.status.start_time || pass.plan.status.execution_attempts > 0;
}

// Of a job that has begun, what could be read is gone on with (summary.cc tells of the errors);
// where that is not all, with the file that its servers were given.
bool can_go_on(const Pass& pass) {
  const auto& status = pass.plan.status;
  const bool has_file =
      pass.seen.former_file || pass.seen.config_maps.contains(status.execution_attempts);
  return (pass.seen.only_invalid && has_begun_once(pass)) ||
         (pass.seen.only_for_servers && status.start_time && has_file);
}

}  // namespace

std::optional<ConditionText> refusal_of_spec(const Pass& pass) {
  if (!pass.seen.errors.empty() && !can_go_on(pass))
    return ConditionText{"InvalidSpec", api::to_string(pass.seen.errors)};
  if (pass.plan.status.start_time) return std::nullopt;
  const auto errors = not_supported(pass);
  if (errors.empty()) return std::nullopt;
  return ConditionText{"NotSupported", api::to_string(errors)};
}

bool refuse(Pass& pass) {
  if (const auto why = refusal_of_spec(pass)) {
    if (pass.plan.status.start_time) {
      set_condition(pass, api::kConditionDegraded, true, *why);
      return true;
    }
    if (has_begun_once(pass)) return false;  // an edit may mend it
    fail(pass, why->reason, why->message);
    return true;
  }
  for (const Refusal& refusal : pass.seen.refusals) {
    if (!is_final(pass, refusal)) continue;
    fail(pass, final_reason(refusal.cause), refusal.object + ": " + refusal.message);
    return true;
  }
  return false;
}

}  // namespace outrigger::controller
