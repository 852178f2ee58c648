#include <algorithm>

#include "api/names.h"
#include "operator/objects/pod.h"
#include "operator/policy/conditions.h"
#include "operator/policy/images.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/pods.h"
#include "operator/policy/progress.h"
#include "operator/policy/queue.h"
#include "operator/policy/restarts.h"

namespace outrigger::controller {
namespace {

// Reasons of the condition Suspended.
constexpr std::string_view kSuspended = "Suspended";
constexpr std::string_view kSuspending = "Suspending";

// Training would begin anew after each restart, which may be what a short job wants.
void warn_of_lost_checkpoints(Pass& pass) {
  const std::string& path = checkpoint_folder(pass);
  if (outlives_server_pod(pass.seen.job, path)) return;
  pass.event("CheckpointsNotKept",
             path +
                 " goes with the server's pod, so a restart begins at step 0; name a claim in "
                 "spec.checkpoint or spec.output",
             true);
}

bool has_begun(const api::TrainingJobStatus& status) {
  return status.start_time || status.execution_attempts > 0;
}

// Now, or when the first pod was made by a pass that could not tell.
api::Time beginning(const Pass& pass) {
  api::Time first = pass.now;
  for (const Pod& pod : pass.seen.pods) {
    if (pass.is_own(pod) && !pod.deleting) first = std::min(first, pod.created.value_or(first));
  }
  return first;
}

void begin(Pass& pass, const std::string& event) {
  auto& status = pass.status();
  status.start_time = has_begun(status) ? pass.now : beginning(pass);
  choose_images(pass);
  begin_attempt(pass);
  tell_output(pass);
  if (find_condition(status, api::kConditionSuspended) != nullptr) {
    set_condition(pass, api::kConditionSuspended, false, {"Resumed", "the job goes on"});
  }
  pass.event(event, "attempt " + std::to_string(status.execution_attempts));
  warn_of_lost_checkpoints(pass);
  warn_of_unknown_fields(pass);
}

// The rest of what is shown of a job without pods.
void tell_held(Pass& pass, const ConditionText& why) {
  set_condition(pass, api::kConditionRunning, false, why);
  set_condition(pass, api::kConditionPodsReady, false, why);
  set_condition(pass, api::kConditionPodsScheduled, false, why);
  clear_troubles(pass, why);
}

// Its servers were asked to end by us, whatever they end with, and its spec may be another by now:
// it begins anew. Who is on a node that does not answer is not waited for.
bool is_suspending(const Pass& pass) {
  if (!has_reason(pass.plan.status, api::kConditionSuspended, kSuspending)) return false;
  const auto& pods = pass.seen.pods;
  const auto counts = [&](bool overdue) {
    return std::any_of(pods.begin(), pods.end(), [&](const Pod& pod) {
      return pass.is_own(pod) && is_overdue(pod, pass.now) == overdue;
    });
  };
  return counts(false) || !counts(true);
}

void tell_suspended(Pass& pass, const ConditionText& why) {
  auto& status = pass.status();
  const std::string text = why.reason == kSuspended ? "no pods are left" : why.message;
  const bool was = is_true(status, api::kConditionSuspended) &&
                   has_reason(status, api::kConditionSuspended, why.reason);
  if (!was) pass.event(why.reason, text);
  set_condition(pass, api::kConditionSuspended, true, {why.reason, text});
  status.start_time.reset();
  status.images.clear();
}

}  // namespace

void warn_of_unknown_fields(Pass& pass) {
  if (pass.seen.unknown.empty()) return;
  std::string names;
  for (const std::string& field : pass.seen.unknown) names += (names.empty() ? "" : ", ") + field;
  pass.event("UnknownFields",
             names +
                 ": the TrainingJob definition is newer than this operator, which passes over "
                 "what it does not know",
             true);
}

void begin_first(Pass& pass) {
  const bool was_held = find_condition(pass.status(), api::kConditionSuspended) != nullptr;
  if (has_begun(pass.status()) || was_held) return;
  begin(pass, "Started");
  pass.plan.begins = true;
}

bool has_begun_untold(const Pass& pass) {
  return !has_begun(pass.plan.status) &&
         (!pass.seen.config_maps.empty() || !own_pods(pass, api::Role::kServer).empty() ||
          !own_pods(pass, api::Role::kWorker).empty());
}

bool resume(Pass& pass) {
  if (pass.status().start_time) return false;
  begin(pass, has_begun(pass.status()) ? "Resumed" : "Started");
  pass.again_at(pass.now);
  return true;
}

std::optional<ConditionText> hold_of(const Pass& pass) {
  const auto& status = pass.plan.status;
  if (!status.start_time && status.execution_attempts > 0) {
    if (auto why = refusal_of_spec(pass)) return why;
  }
  if (pass.spec.suspend) return ConditionText{std::string(kSuspended), "spec.suspend is true"};
  if (auto why = hold_of_queue(pass)) return why;
  if (is_suspending(pass))
    return ConditionText{std::string(kSuspended), "it goes on once its former pods have ended"};
  return std::nullopt;
}

void suspend(Pass& pass, const ConditionText& why) {
  auto& status = pass.status();
  const auto servers = own_pods(pass, api::Role::kServer);
  const auto workers = own_pods(pass, api::Role::kWorker);
  const std::string text = why.reason == kQueued ? why.message : "the job is suspended";
  for (const Pod* pod : servers) pass.remove(*pod, text);
  // A server that writes its last checkpoint may still be evaluating with workers.
  const bool servers_ended = std::all_of(servers.begin(), servers.end(), [&](const Pod* pod) {
    return is_over(*pod) || is_overdue(*pod, pass.now);
  });
  for (const Pod* pod : workers) {
    if (servers_ended) pass.remove(*pod, text);
  }
  for (const Pod* pod : servers) {
    if (pod->deleting && !is_over(*pod)) pass.again_at(*pod->deleting + kDeletionMargin);
  }
  const size_t left = servers.size() + workers.size();
  if (left > 0) {
    if (!has_reason(status, api::kConditionSuspended, kSuspending))
      pass.event("Suspending", why.message + ": servers write a checkpoint and end, then workers");
    set_condition(pass, api::kConditionSuspended, false,
                  {std::string(kSuspending), std::to_string(left) + " pods have not ended yet"});
  } else {
    tell_suspended(pass, why);
  }
  tell_held(pass, why);
}

void stop_suspending(Pass& pass) {
  if (!has_reason(pass.status(), api::kConditionSuspended, kSuspending)) return;
  set_condition(pass, api::kConditionSuspended, false, {"Resumed", "the job goes on"});
}

}  // namespace outrigger::controller
