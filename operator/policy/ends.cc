#include "operator/policy/ends.h"

#include <algorithm>

#include "api/names.h"
#include "operator/policy/conditions.h"
#include "operator/policy/pods.h"
#include "operator/policy/progress.h"

namespace outrigger::controller {
namespace {

// Workers of a job that is done end by themselves; one that did not hear of it would dial for ever.
constexpr std::chrono::seconds kFarewell{60};

void end(Pass& pass, std::string_view condition, const std::string& reason,
         const std::string& message) {
  pass.plan.actions.clear();
  pass.status().completion_time = pass.now;
  set_condition(pass, condition, true, {reason, message});
  set_condition(pass, api::kConditionRunning, false, {"Ended", "the job has ended"});
  set_condition(pass, api::kConditionPodsReady, false, {"Ended", "the job has ended"});
  clear_troubles(pass, {"Ended", "the job has ended"});
  pass.again_at(pass.now);
}

bool is_to_go(const Pod& pod, api::CleanPodPolicy policy) {
  if (policy == api::CleanPodPolicy::kAll) return true;
  // A sidecar that runs on is no reason to lose the log of what failed.
  return policy == api::CleanPodPolicy::kNone ? !is_over(pod) : !is_at_rest(pod);
}

// Of a job that failed (its time was over, say) servers would train on.
void clean_pods(Pass& pass) {
  const auto policy = pass.spec.clean_pod_policy;
  const auto& ended = pass.status().completion_time;
  if (policy == api::CleanPodPolicy::kNone && ended &&
      is_true(pass.plan.status, api::kConditionComplete) && pass.now < *ended + kFarewell)
    return pass.again_at(*ended + kFarewell);
  for (const auto role : {api::Role::kServer, api::Role::kWorker}) {
    for (const Pod* pod : own_pods(pass, role)) {
      if (is_to_go(*pod, policy)) pass.remove(*pod, "the job has ended");
    }
  }
}

void end_of_life(Pass& pass) {
  const auto& ended = pass.status().completion_time;
  if (!pass.spec.ttl_after_finished || !ended) return;
  const api::Time last = *ended + *pass.spec.ttl_after_finished;
  if (pass.now < last) return pass.again_at(last);
  pass.plan.actions.push_back(Remove{ObjectKind::kTrainingJob,
                                     pass.job_name(),
                                     pass.job_uid(),
                                     {},
                                     "ttlSecondsAfterFinished is over"});
}

// Whether one of the user's own was asked to stop, or is gone: its peers may end well for that.
bool was_stopped(const Pass& pass, const std::vector<const Pod*>& servers) {
  if (pass.spec.server.engine != api::Engine::kExternal) return false;
  return servers.size() < static_cast<size_t>(pass.spec.server.replicas) ||
         std::any_of(servers.begin(), servers.end(),
                     [](const Pod* pod) { return pod->deleting || is_disrupted(*pod); });
}

}  // namespace

void fail(Pass& pass, const std::string& reason, const std::string& message) {
  end(pass, api::kConditionFailed, reason, message);
  pass.event("Failed", reason + ": " + message, true);
}

bool complete(Pass& pass) {
  const auto servers = current_servers(pass);
  const bool first_done = std::any_of(servers.begin(), servers.end(), [&](const Pod* pod) {
    return pod->index == 0 && has_done_its_work(pass, *pod);
  });
  if (!first_done || was_stopped(pass, servers)) return false;
  if (!std::all_of(servers.begin(), servers.end(), [](const Pod* pod) { return is_over(*pod); }))
    return false;
  end(pass, api::kConditionComplete, "Trained", "training is done");
  pass.event("Completed", "training is done");
  return true;
}

void after_the_end(Pass& pass) {
  clean_pods(pass);
  end_of_life(pass);
}

}  // namespace outrigger::controller
