#include "operator/policy/troubles.h"

#include <algorithm>
#include <variant>

#include "operator/policy/pods.h"
#include "operator/policy/queue.h"

namespace outrigger::controller {
namespace {

std::string reason_of(RefusalCause cause) {
  switch (cause) {
    case RefusalCause::kQuota:
      return "QuotaExceeded";
    case RefusalCause::kForbidden:
      return "Forbidden";
    case RefusalCause::kInvalid:
      return "InvalidPod";
    case RefusalCause::kPodSecurity:
      return "PodSecurity";
    case RefusalCause::kForeign:
      return "NameCollision";
    case RefusalCause::kLeftover:
      return "FormerPodsRemain";
    case RefusalCause::kNamespaceEnds:
      return "NamespaceEnds";
    case RefusalCause::kOther:
      break;
  }
  return "CreateFailed";
}

bool is_made_by(const Plan& plan, const std::string& object) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [&](const Action& action) {
    const auto* create = std::get_if<Create>(&action);
    return create != nullptr && object == create->head["kind"].get<std::string>() + " " +
                                              create->head["metadata"]["name"].get<std::string>();
  });
}

// What may be asked for again by now, and is not, nobody wants any more.
bool still_counts(const Pass& pass, const Refusal& refusal) {
  return !pass.all_is_planned || refusal.at + refusal.patience > pass.now ||
         is_made_by(pass.plan, refusal.object);
}

}  // namespace

std::optional<Why> placing_trouble(const Pass& pass, api::Role role) {
  for (const Refusal& refusal : pass.seen.refusals) {
    if (refusal.role.value_or(role) == role && still_counts(pass, refusal))
      return Why{reason_of(refusal.cause), refusal.object + ": " + refusal.message};
  }
  for (const Pod* pod : own_pods(pass, role)) {
    if (is_living(*pod) && pod->unscheduled)
      return Why{pod->unscheduled->reason, pod->name + ": " + pod->unscheduled->message};
  }
  const int allowed = allowed_workers(pass);
  if (role == api::Role::kWorker && allowed < pass.spec.workers.replicas) {
    return Why{"NotAdmitted",
               "the queue admitted " + std::to_string(allowed) + " of " +
                   std::to_string(pass.spec.workers.replicas) +
                   " workers; a job that is suspended and resumed asks it for all of them"};
  }
  return std::nullopt;
}

std::optional<Why> trouble_of(const Pass& pass, api::Role role) {
  if (auto trouble = placing_trouble(pass, role)) return trouble;
  for (const Pod* pod : own_pods(pass, role)) {
    if (is_living(*pod) && pod->waiting)
      return Why{pod->waiting->reason, pod->name + ": " + pod->waiting->message};
  }
  return std::nullopt;
}

}  // namespace outrigger::controller
