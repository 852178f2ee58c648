#include "operator/policy/pods.h"

#include <algorithm>
#include <tuple>

namespace outrigger::controller {

bool is_over(const Pod& pod) {
  return pod.ended || pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

bool is_done(const Pod& pod) {
  return pod.ended ? pod.ended->exit_code == 0 : pod.phase == PodPhase::kSucceeded;
}

bool has_done_its_work(const Pass& pass, const Pod& server) {
  const bool external = pass.spec.server.engine == api::Engine::kExternal;
  return is_done(server) && !(external && (server.deleting || is_disrupted(server)));
}

api::Time ended_at(const Pod& pod, api::Time now) {
  if (pod.ended && pod.ended->at) return *pod.ended->at;
  return is_disrupted(pod) ? now : pod.created.value_or(now);
}

bool is_overdue(const Pod& pod, api::Time now) {
  return pod.deleting && now > *pod.deleting + kDeletionMargin;
}

// The kubelet moves the phase only a moment after the last container.
bool is_at_rest(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed ||
         (pod.ended && !pod.runs);
}

bool is_disrupted(const Pod& pod) { return pod.conditions.contains("DisruptionTarget"); }

const Pod* running_first_server(const std::vector<Pod>& pods, const std::string& job_uid) {
  const Pod* first = nullptr;
  for (const Pod& pod : pods) {
    if (pod.role != api::Role::kServer || pod.index != 0 || !pod.started || pod.ended ||
        pod.job_uid != job_uid)
      continue;
    if (first == nullptr || pod.attempt > first->attempt) first = &pod;
  }
  return first;
}

std::vector<const Pod*> own_pods(const Pass& pass, api::Role role) {
  std::vector<const Pod*> pods;
  for (const Pod& pod : pass.seen.pods) {
    if (pod.role == role && pass.is_own(pod)) pods.push_back(&pod);
  }
  std::sort(pods.begin(), pods.end(), [](const Pod* a, const Pod* b) {
    return std::tie(a->index, a->number) < std::tie(b->index, b->number);
  });
  return pods;
}

std::vector<const Pod*> current_servers(const Pass& pass) {
  auto pods = own_pods(pass, api::Role::kServer);
  std::erase_if(
      pods, [&](const Pod* pod) { return pod->attempt != pass.plan.status.execution_attempts; });
  return pods;
}

int next_number(const Pass& pass, api::Role role, int index) {
  int next = 0;
  for (const Pod& pod : pass.seen.pods) {
    if (pod.role == role && pod.index == index) next = std::max(next, pod.number + 1);
  }
  return next;
}

}  // namespace outrigger::controller
