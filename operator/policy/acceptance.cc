#include <string>

#include "api/names.h"
#include "api/support.h"
#include "operator/policy/conditions.h"
#include "operator/policy/ends.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/restarts.h"

namespace outrigger::controller {

std::vector<api::FieldError> not_supported(const Pass& pass) {
  const bool builtin = pass.spec.server.engine == api::Engine::kBuiltin;
  return api::check_supported(pass.seen.job,
                              {.cluster = true, .gpu = pass.options.gpu || !builtin});
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
