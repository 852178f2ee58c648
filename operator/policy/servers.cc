#include <algorithm>
#include <map>

#include "api/names.h"
#include "operator/objects/pod.h"
#include "operator/objects/workload.h"
#include "operator/policy/conditions.h"
#include "operator/policy/images.h"
#include "operator/policy/pods.h"
#include "operator/policy/queue.h"
#include "operator/policy/reasons.h"
#include "operator/policy/roles.h"

namespace outrigger::controller {
namespace {

// An attempt that never ran would else be followed by the next at once, for ever where restarts are
// not counted.
constexpr std::chrono::seconds kPauseBeforeNext{10};

// The one that the last failure began with, so that its logs can be read.
bool is_kept(const Pass& pass, const Pod& pod) {
  const auto& failure = pass.plan.status.last_failure;
  return failure && failure->pod == pod.name && is_failed(pod) && is_at_rest(pod) && !pod.deleting;
}

// True while a server of a former attempt may still be at work.
bool former_are_at_work(Pass& pass) {
  bool at_work = false;
  for (const Pod* pod : own_pods(pass, api::Role::kServer)) {
    if (pod->attempt >= pass.plan.status.execution_attempts || is_kept(pass, *pod)) continue;
    pass.remove(*pod, "attempt " + std::to_string(pod->attempt) + " is over");
    if (is_over(*pod) || is_overdue(*pod, pass.now)) continue;
    at_work = true;
    if (pod->deleting) pass.again_at(*pod->deleting + kDeletionMargin + std::chrono::seconds(1));
  }
  return at_work;
}

bool should_pause(Pass& pass) {
  const auto& status = pass.plan.status;
  const auto is_for = [&status](std::string_view reason) {
    return has_reason(status, api::kConditionRestarting, reason);
  };
  if (!is_true(status, api::kConditionRestarting) ||
      !(is_for(kFailedBeforeRunning) || is_for(kPutOutBeforeRunning)))
    return false;
  // Stays True from one failed attempt to the next, so its transition is no use here.
  const auto& failed = status.last_failure;
  if (!failed || !failed->time) return false;
  const api::Time until = std::min(*failed->time, pass.now) + kPauseBeforeNext;
  if (pass.now >= until) return false;
  pass.again_at(until);
  return true;
}

}  // namespace

void keep_servers(Pass& pass) {
  if (former_are_at_work(pass) || should_pause(pass)) return;
  const auto refused = refused_until(pass, api::Role::kServer);
  std::map<int, const Pod*> kept;
  for (const Pod* pod : current_servers(pass)) {
    if (pod->index >= pass.spec.server.replicas) {
      pass.remove(*pod, "there are fewer servers now");
    } else if (!kept.emplace(pod->index, pod).second) {
      pass.remove(*pod, "another server has its index");
    }
  }
  for (int index = 0; index < pass.spec.server.replicas; ++index) {
    if (kept.contains(index)) continue;
    if (refused) return pass.again_at(*refused);
    PodOrder order;
    order.place = {api::Role::kServer, index, next_number(pass, api::Role::kServer, index)};
    order.attempt = pass.plan.status.execution_attempts;
    order.image = image_for(pass, api::Role::kServer);
    Json pod = build_pod(pass.seen.job, order, pass.options);
    place_pod(pod, placement_of(pass, api::Role::kServer));
    pass.create(ObjectKind::kPod, std::move(pod));
  }
}

}  // namespace outrigger::controller
