#include "operator/objects/children.h"

#include <algorithm>

#include "operator/names.h"
#include "operator/policy/pods.h"
#include "operator/policy/roles.h"

namespace outrigger::controller {

void keep_children(Pass& pass) {
  const api::TrainingJob& job = pass.seen.job;
  const int attempt = pass.plan.status.execution_attempts;
  if (!pass.seen.secret) pass.create(ObjectKind::kSecret, build_secret(job, pass.options));
  if (!pass.seen.network_policy) pass.create(ObjectKind::kNetworkPolicy, build_network_policy(job));
  if (!pass.seen.service) {
    pass.create(ObjectKind::kService, build_service(job, attempt));
  } else if (pass.seen.service->attempt != attempt) {
    pass.plan.actions.push_back(
        Patch{ObjectKind::kService, service_name(pass.job_name()), service_patch(job, attempt)});
  }
  if (!pass.seen.config_maps.contains(attempt))
    pass.create(ObjectKind::kConfigMap, build_config_map(job, attempt));
  for (const auto& former : pass.seen.config_maps) {
    const int of_attempt = former.first;
    const bool used =
        of_attempt >= attempt ||
        std::any_of(pass.seen.pods.begin(), pass.seen.pods.end(), [of_attempt](const Pod& pod) {
          return pod.role == api::Role::kServer && pod.attempt == of_attempt;
        });
    if (used) continue;
    pass.plan.actions.push_back(
        Remove{ObjectKind::kConfigMap, former.second, {}, {}, "its attempt is over"});
  }
}

std::optional<api::Time> refused_until(const Pass& pass, api::Role role) {
  constexpr std::chrono::seconds kPatience{15};
  std::optional<api::Time> until;
  for (const Refusal& refusal : pass.seen.refusals) {
    const api::Time again = refusal.at + kPatience;
    if (refusal.role.value_or(role) == role && again > pass.now && (!until || again > *until))
      until = again;
  }
  return until;
}

}  // namespace outrigger::controller
