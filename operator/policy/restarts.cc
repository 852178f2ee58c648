#include "operator/policy/restarts.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "api/exit_codes.h"
#include "api/names.h"
#include "operator/policy/conditions.h"
#include "operator/policy/ends.h"
#include "operator/policy/failures.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/pods.h"
#include "operator/policy/progress.h"
#include "operator/policy/queue.h"
#include "operator/policy/reasons.h"

namespace outrigger::controller {
namespace {

using api::FailureAction;

// Ranks tell of a lost peer within moments of each other; the one that knows why may be last.
constexpr std::chrono::seconds kPeerPatience{10};

struct Failure {
  api::FailureStatus status;
  Verdict verdict;
};

bool only_noticed(const Failure& failure) {
  return failure.status.exit_code == static_cast<int>(api::ExitCode::kPeerLost);
}

// The smaller, the more it says of the cause.
int distance_to_cause(const Failure& failure) {
  if (failure.verdict.by_rule) return 0;
  if (failure.verdict.action == FailureAction::kFailJob) return 1;
  if (only_noticed(failure)) return 4;
  return failure.verdict.counted ? 2 : 3;
}

Failure failure_of_pod(const Pass& pass, const Pod& pod) {
  Verdict verdict = judge(pass.spec.failure_policy, pod);
  auto status = failure_of(pod, verdict, pass.now);
  return {std::move(status), std::move(verdict)};
}

Failure vanished(const Pass& pass, int index) {
  Failure failure;
  failure.verdict.counted = false;
  failure.verdict.reason = "PodDeleted";
  failure.verdict.message = "the pod of rank " + std::to_string(index) + " is gone";
  failure.status.role = api::Role::kServer;
  failure.status.reason = failure.verdict.reason;
  failure.status.message = failure.verdict.message;
  failure.status.time = pass.now;
  return failure;
}

bool all_have_places(const Pass& pass) {
  const auto servers = current_servers(pass);
  return std::count_if(servers.begin(), servers.end(), [](const Pod* pod) {
           return pod->taken.has_value();
         }) >= pass.spec.server.replicas;
}

// Who gives up waiting for a rank that has no place yet has done nothing wrong.
void excuse_those_who_waited(const Pass& pass, std::vector<Failure>& failures) {
  if (all_have_places(pass)) return;
  for (Failure& failure : failures) {
    if (only_noticed(failure) && !failure.verdict.by_rule) failure.verdict.counted = false;
  }
}

std::vector<Failure> server_failures(Pass& pass) {
  std::vector<Failure> failures;
  std::set<int> there;
  for (const Pod* pod : current_servers(pass)) {
    there.insert(pod->index);
    if (has_done_its_work(pass, *pod)) continue;
    if (is_over(*pod) || is_overdue(*pod, pass.now)) {
      failures.push_back(failure_of_pod(pass, *pod));
    } else if (pod->deleting) {
      pass.again_at(*pod->deleting + kDeletionMargin + std::chrono::seconds(1));
    }
  }
  for (int index = 0; index < pass.spec.server.replicas; ++index) {
    if (!there.contains(index) && !is_creating(pass.plan.status))
      failures.push_back(vanished(pass, index));
  }
  excuse_those_who_waited(pass, failures);
  return failures;
}

// By the rules. Of one that was asked to end no rule is asked, but of one of a drain: a rule may
// name DisruptionTarget.
FailureAction action_after(const Pass& pass, const Pod& worker) {
  if (!is_failed(worker) || worker.index >= allowed_workers(pass))
    return FailureAction::kReplacePod;
  if (worker.deleting && !is_disrupted(worker)) return FailureAction::kReplacePod;
  return judge(pass.spec.failure_policy, worker).action;
}

// Its pod may be there long after, while its successor backs off.
bool failed_before_servers_ran_again(const Pass& pass, const Pod& worker) {
  const auto* restarting = find_condition(pass.plan.status, api::kConditionRestarting);
  return restarting != nullptr && restarting->last_transition_time &&
         ended_at(worker, pass.now) <= *restarting->last_transition_time;
}

// While a restart is under way none asks for another: it is for all that fail meanwhile. It may
// wait for places for hours; what is to fail the job does so at once.
void add_worker_failures(const Pass& pass, std::vector<Failure>& failures) {
  const bool restarting = is_true(pass.plan.status, api::kConditionRestarting);
  for (const Pod* pod : own_pods(pass, api::Role::kWorker)) {
    const FailureAction action = action_after(pass, *pod);
    if (action == FailureAction::kReplacePod) continue;
    if (restarting ? action == FailureAction::kFailJob
                   : !failed_before_servers_ran_again(pass, *pod))
      failures.push_back(failure_of_pod(pass, *pod));
  }
}

bool should_wait(Pass& pass, const std::vector<Failure>& failures) {
  if (!std::all_of(failures.begin(), failures.end(), only_noticed)) return false;
  const auto servers = current_servers(pass);
  if (std::all_of(servers.begin(), servers.end(), [](const Pod* pod) { return is_over(*pod); }))
    return false;
  api::Time first = pass.now;
  for (const Failure& failure : failures) first = std::min(first, failure.status.time.value());
  if (pass.now - first >= kPeerPatience) return false;
  pass.again_at(first + kPeerPatience);
  return true;
}

// Of Restarting; before the status tells of this failure. Who was put out waits for places, and has
// them once an attempt fails in them: without the startup deadline nothing would end failures that
// are not counted.
std::string restarting_reason(const Pass& pass, const Verdict& verdict) {
  if (has_run(pass.plan.status)) return verdict.reason;
  const bool failed_in_places = !verdict.counted && all_have_places(pass);
  const bool waits = was_put_out(pass.plan.status) && !failed_in_places;
  return std::string(waits || verdict.reason == kDisrupted ? kPutOutBeforeRunning
                                                           : kFailedBeforeRunning);
}

void begin_again(Pass& pass, const Failure& cause) {
  auto& status = pass.status();
  const Verdict& verdict = cause.verdict;
  const std::string reason = restarting_reason(pass, verdict);
  // A transition: the startup deadline counts from now.
  if (was_put_out(status) && reason == kFailedBeforeRunning)
    set_condition(pass, api::kConditionRestarting, false, {"Placed", "all servers had places"});
  if (verdict.counted) ++status.restarts;
  status.last_failure = cause.status;
  // Else the next attempt's file is this one's (file_wanted).
  if (!pass.seen.config_maps.contains(status.execution_attempts)) warn_of_unknown_fields(pass);
  begin_attempt(pass);
  pass.again_at(pass.now);
  const std::string text = verdict.reason + (verdict.message.empty() ? "" : ": " + verdict.message);
  set_condition(pass, api::kConditionRestarting, true, {reason, text});
  pass.plan.restart =
      RestartNote{cause.status.role.value_or(api::Role::kServer), verdict.reason, verdict.counted};
  pass.event("Restarting",
             "attempt " + std::to_string(status.execution_attempts) + ", " +
                 (verdict.counted ? "restart " + std::to_string(status.restarts) + " of " +
                                        std::to_string(pass.spec.failure_policy.max_restarts)
                                  : std::string("not counted")) +
                 ", after " + text,
             true);
}

}  // namespace

void begin_attempt(Pass& pass) {
  auto& status = pass.status();
  pass.plan.actions.clear();
  ++status.execution_attempts;
  forget_lost_checkpoint(pass);
  const api::RoleStatus none{std::string(api::kServerRole), pass.spec.server.replicas, 0, 0};
  for (auto& role : status.roles) {
    if (role.name == none.name) role = none;
  }
  set_condition(pass, api::kConditionRunning, false,
                {std::string(kCreatingServers), "server pods are being made"});
  set_condition(pass, api::kConditionPodsScheduled, false,
                {std::string(kCreatingServers), "server pods are being made"});
  set_condition(pass, api::kConditionPodsReady, false,
                {std::string(kCreatingServers), "server pods are being made"});
}

bool is_creating(const api::TrainingJobStatus& status) {
  return has_reason(status, api::kConditionRunning, kCreatingServers);
}

bool has_run(const api::TrainingJobStatus& status) {
  return find_condition(status, api::kConditionRunning) != nullptr && !is_creating(status) &&
         !has_reason(status, api::kConditionRunning, kStartingServers);
}

bool was_put_out(const api::TrainingJobStatus& status) {
  return is_true(status, api::kConditionRestarting) &&
         (has_reason(status, api::kConditionRestarting, kPutOutBeforeRunning) ||
          (status.last_failure && status.last_failure->reason == kDisrupted));
}

bool restart(Pass& pass) {
  std::vector<Failure> failures = server_failures(pass);
  add_worker_failures(pass, failures);
  if (failures.empty() || should_wait(pass, failures)) return false;
  const Failure& cause =
      *std::min_element(failures.begin(), failures.end(), [](const auto& a, const auto& b) {
        return std::pair(distance_to_cause(a), a.status.time) <
               std::pair(distance_to_cause(b), b.status.time);
      });
  const Verdict& verdict = cause.verdict;
  if (verdict.action == FailureAction::kFailJob) {
    pass.status().last_failure = cause.status;
    fail(pass, verdict.reason, verdict.message);
  } else if (verdict.counted && pass.status().restarts >= pass.spec.failure_policy.max_restarts) {
    pass.status().last_failure = cause.status;
    fail(pass, "MaxRestartsExceeded",
         "failurePolicy.maxRestarts is " + std::to_string(pass.spec.failure_policy.max_restarts) +
             "; the last failure was " + verdict.reason + ": " + verdict.message);
  } else {
    begin_again(pass, cause);
  }
  return true;
}

}  // namespace outrigger::controller
