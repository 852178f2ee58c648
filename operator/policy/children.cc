#include "operator/objects/children.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "api/names.h"
#include "operator/names.h"
#include "operator/policy/conditions.h"
#include "operator/policy/pods.h"
#include "operator/policy/roles.h"

namespace outrigger::controller {
namespace {

// Long enough for an attempt's first pods, which are made in one pass or a few.
constexpr std::chrono::seconds kSecretIsSure{30};

// Not at once after a refusal: whoever refused would be asked without an end.
void make(Pass& pass, Create create) {
  const std::string name = create.head["kind"].get<std::string>() + " " +
                           create.head["metadata"]["name"].get<std::string>();
  for (const Refusal& refusal : pass.seen.refusals) {
    const api::Time again = refusal.at + refusal.patience;
    if (refusal.object == name && again > pass.now) return pass.again_at(again);
  }
  pass.plan.actions.push_back(std::move(create));
}

Create secret_of(const Pass& pass) {
  Create secret(ObjectKind::kSecret, build_secret(pass.seen.job, pass.options));
  secret.likely_there = std::any_of(pass.seen.pods.begin(), pass.seen.pods.end(),
                                    [&pass](const Pod& pod) { return pass.is_own(pod); });
  return secret;
}

bool makes_pods(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    const auto* create = std::get_if<Create>(&action);
    return create != nullptr && create->kind == ObjectKind::kPod;
  });
}

}  // namespace

std::optional<std::string> file_wanted(const Observed& seen) {
  const auto& status = *seen.job.status;
  const bool understood = seen.unknown.empty() && (seen.errors.empty() || seen.only_invalid);
  // A job that is resumed gets this operator's images, and what it knows they know.
  if (understood || !is_true(status, api::kConditionRestarting) ||
      seen.config_maps.contains(status.execution_attempts))
    return std::nullopt;
  const auto next = seen.config_maps.lower_bound(status.execution_attempts);
  if (next == seen.config_maps.begin()) return std::nullopt;
  return std::prev(next)->second.name;
}

void keep_children(Pass& pass) {
  const api::TrainingJob& job = pass.seen.job;
  const int attempt = pass.plan.status.execution_attempts;
  if (!pass.seen.secret_age) make(pass, secret_of(pass));
  if (!pass.seen.network_policy) {
    make(pass, {ObjectKind::kNetworkPolicy, build_network_policy(job)});
  } else if (*pass.seen.network_policy != api::ranks_per_pod(pass.spec)) {
    pass.plan.actions.push_back(Patch{ObjectKind::kNetworkPolicy,
                                      network_policy_name(pass.job_name()),
                                      network_policy_patch(job)});
  }
  if (!pass.seen.service) {
    make(pass, {ObjectKind::kService, build_service(job, attempt)});
  } else if (pass.seen.service->attempt != attempt) {
    Json patch = service_patch(job, attempt);
    // Another's that has the name meanwhile is a conflict then.
    if (!pass.seen.service->uid.empty()) patch["metadata"]["uid"] = pass.seen.service->uid;
    pass.plan.actions.push_back(
        Patch{ObjectKind::kService, service_name(pass.job_name()), std::move(patch)});
  }
  if (!pass.seen.config_maps.contains(attempt))
    make(pass, {ObjectKind::kConfigMap, build_config_map(job, attempt, pass.seen.former_file)});
  for (const auto& former : pass.seen.config_maps) {
    const int of_attempt = former.first;
    const bool used =
        of_attempt >= attempt ||
        std::any_of(pass.seen.pods.begin(), pass.seen.pods.end(), [of_attempt](const Pod& pod) {
          return pod.role == api::Role::kServer && pod.attempt == of_attempt;
        });
    if (used) continue;
    pass.plan.actions.push_back(Remove{
        ObjectKind::kConfigMap, former.second.name, former.second.uid, {}, "its attempt is over"});
  }
}

void keep_secret(Pass& pass) {
  const auto& age = pass.seen.secret_age;
  if (!age || *age < kSecretIsSure || !makes_pods(pass.plan)) return;
  auto& actions = pass.plan.actions;
  actions.insert(actions.begin(), secret_of(pass));
}

std::optional<api::Time> refused_until(const Pass& pass, api::Role role) {
  std::optional<api::Time> until;
  for (const Refusal& refusal : pass.seen.refusals) {
    const api::Time again = refusal.at + refusal.patience;
    if (refusal.role.value_or(role) == role && again > pass.now && (!until || again > *until))
      until = again;
  }
  return until;
}

}  // namespace outrigger::controller
