#include "operator/policy/queue.h"

#include <algorithm>
#include <string>

#include "api/names.h"
#include "operator/names.h"
#include "operator/objects/workload.h"
#include "operator/policy/pods.h"
#include "operator/policy/roles.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;

// How often it is looked whether Kueue has been installed, or what could not be read now can.
constexpr seconds kLookAgain{15};

const Json* condition_of(const Workload& workload, const char* type) {
  for (const Json& one : workload.conditions) {
    if (one.is_object() && one.value("type", "") == type) return &one;
  }
  return nullptr;
}

bool holds(const Workload& workload, const char* type) {
  const Json* condition = condition_of(workload, type);
  return condition != nullptr && condition->value("status", "") == "True";
}

std::string said(const Workload& workload, const char* type, const char* field) {
  const Json* condition = condition_of(workload, type);
  return condition == nullptr ? "" : condition->value(field, "");
}

const PodSet* pod_set(const Pass& pass, api::Role role) {
  const auto& workload = pass.seen.queue.workload;
  if (!workload) return nullptr;
  const auto found = workload->pod_sets.find(role);
  return found == workload->pod_sets.end() ? nullptr : &found->second;
}

std::string queue_of(const Pass& pass) {
  return has_queue(pass) ? *pass.spec.scheduling_policy->queue : "";
}

bool is_admitted(const Workload& workload) {
  return holds(workload, "Admitted") && !holds(workload, "Evicted") && !holds(workload, "Finished");
}

// Why an admitted job cannot be given pods as its admission wants them.
std::string cannot_place(const Pass& pass) {
  for (const auto& [role, pods] : pass.seen.queue.workload->pod_sets) {
    for (const std::string& flavor : pods.flavors) {
      if (!pass.seen.queue.flavors.contains(flavor)) return pass.seen.queue.problem;
    }
  }
  return {};
}

// The checks that have not agreed, each with its words.
std::string open_checks(const Workload& workload) {
  std::string text;
  for (const AdmissionCheck& check : workload.checks) {
    if (check.state == "Ready") continue;
    text += (text.empty() ? ": " : "; ") + check.name + " is " + check.state;
    if (!check.message.empty()) text += " (" + check.message + ")";
  }
  return text;
}

// A check that rejects a job (MultiKueue's does: it knows no TrainingJobs), or too many returns to
// the queue. Its words are among the events of the Workload only.
std::string put_out_text(const Pass& pass, const Workload& workload) {
  const std::string kueue = said(workload, "Evicted", "message");
  return "queue " + queue_of(pass) + " has put the job out" + (kueue.empty() ? "" : ": " + kueue) +
         "; `kubectl describe workload " + workload.name +
         "` says more, and suspending and resuming the job lets it enter anew";
}

std::string waiting_text(const Pass& pass, const Workload& workload) {
  const std::string kueue = said(workload, "QuotaReserved", "message");
  if (!workload.active) return put_out_text(pass, workload);
  if (holds(workload, "QuotaReserved")) {
    return "queue " + queue_of(pass) + " has reserved quota and waits for its admission checks" +
           open_checks(workload);
  }
  return "waits in queue " + queue_of(pass) + (kueue.empty() ? "" : ": " + kueue);
}

bool has_pods(const Pass& pass) {
  return !own_pods(pass, api::Role::kServer).empty() || !own_pods(pass, api::Role::kWorker).empty();
}

void patch(Pass& pass, Json body, const std::string& subresource) {
  const Workload& workload = *pass.seen.queue.workload;
  body["metadata"]["resourceVersion"] = workload.version;
  pass.plan.actions.push_back(
      Patch{ObjectKind::kWorkload, workload.name, std::move(body), subresource});
}

void tell(Pass& pass, const WorkloadCondition& condition) {
  Json conditions = with_condition(pass.seen.queue.workload->conditions, condition, pass.now);
  patch(pass, {{"status", {{"conditions", std::move(conditions)}}}}, "status");
}

// As Kueue's own controllers of jobs do once the last pod of an evicted job is gone.
void give_back(Pass& pass) {
  const Workload& workload = *pass.seen.queue.workload;
  const std::string reason = said(workload, "Evicted", "reason");
  const std::string message = said(workload, "Evicted", "message");
  Json conditions = workload.conditions;
  // Who was preempted queues again at once; Kueue itself says when in all other cases.
  conditions = with_condition(std::move(conditions),
                              {"Requeued", reason == "Preempted", reason, message}, pass.now);
  conditions =
      with_condition(std::move(conditions), {"QuotaReserved", false, "Pending", message}, pass.now);
  conditions = with_condition(
      std::move(conditions),
      {"Admitted", false, "NoReservation", "The workload has no reservation"}, pass.now);
  patch(pass,
        {{"status",
          {{"conditions", std::move(conditions)},
           {"admission", nullptr},
           {"reclaimablePods", nullptr}}}},
        "status");
}

// Of a Workload without a reservation; else its pod sets are fixed.
void ask_for_what_is_wanted(Pass& pass) {
  const PodSet* servers = pod_set(pass, api::Role::kServer);
  const PodSet* workers = pod_set(pass, api::Role::kWorker);
  const bool same =
      servers != nullptr && servers->wanted == pass.spec.server.replicas &&
      (workers == nullptr ? 0 : workers->wanted) == workers_to_ask_for(pass.spec.workers);
  if (same) return;
  patch(pass, {{"spec", {{"podSets", build_pod_sets(pass.seen.job, pass.options)}}}}, "");
}

// Kueue waits for this where it is told to (waitForPodsReady).
bool tell_ready(Pass& pass) {
  const Workload& workload = *pass.seen.queue.workload;
  const bool ready = is_true(pass.plan.status, api::kConditionRunning);
  const bool was = holds(workload, "PodsReady");
  const std::string reason = said(workload, "PodsReady", "reason");
  const bool recovers = reason == "WaitForRecovery" || reason == "Recovered";
  if (ready == was && !reason.empty()) return false;
  if (ready) {
    tell(pass, {"PodsReady", true, recovers ? "Recovered" : "Started", "All servers are ready"});
  } else {
    tell(pass, {"PodsReady", false, was || recovers ? "WaitForRecovery" : "WaitForStart",
                "Not all servers are ready"});
  }
  return true;
}

// Workers that are no longer wanted; never more again while this admission lasts. An autoscaled job
// gives none back: it may want them again at any moment.
void give_back_workers(Pass& pass) {
  const PodSet* workers = pod_set(pass, api::Role::kWorker);
  if (workers == nullptr || pass.spec.workers.autoscaling) return;
  int used = pass.spec.workers.replicas;
  for (const Pod* pod : own_pods(pass, api::Role::kWorker)) {
    if (!is_at_rest(*pod)) used = std::max(used, pod->index + 1);
  }
  const int spare = workers->wanted - used;
  if (spare <= workers->reclaimed) return;
  Json list = Json::array({{{"name", role_name(api::Role::kWorker)}, {"count", spare}}});
  patch(pass, {{"status", {{"reclaimablePods", std::move(list)}}}}, "status");
}

// Of a job that has no Workload: why it has none yet.
std::string entering_text(const Pass& pass) {
  if (!pass.seen.queue.problem.empty()) return pass.seen.queue.problem;
  std::string text = "enters queue " + queue_of(pass);
  for (const Refusal& refusal : pass.seen.refusals) {
    if (refusal.object == "Workload " + workload_name(pass.job_name()))
      text += ": " + refusal.message;
  }
  return text;
}

void remove(Pass& pass, const std::string& why) {
  const Workload& workload = *pass.seen.queue.workload;
  pass.plan.actions.push_back(Remove{ObjectKind::kWorkload, workload.name, workload.uid, {}, why});
}

// Of a job that has ended. Of a pod that is kept, sidecars may run on for ever.
bool holds_place(const Pass& pass, const Pod& pod) {
  const bool kept = pass.spec.clean_pod_policy == api::CleanPodPolicy::kNone;
  return pass.is_own(pod) && !(kept ? is_over(pod) : is_at_rest(pod));
}

// It enters its queue anew, with what its spec asks for by then.
bool is_held_beside_its_queue(const Pass& pass) {
  return pass.spec.suspend || (is_true(pass.plan.status, api::kConditionSuspended) &&
                               !has_reason(pass.plan.status, api::kConditionSuspended, kQueued));
}

void make(Pass& pass) {
  const bool wants_class = pass.spec.scheduling_policy->priority_class_name.has_value();
  if (is_held_beside_its_queue(pass) || pass.seen.queue.asked || has_pods(pass)) return;
  if (wants_class && !pass.seen.queue.priority) return pass.again_at(pass.now + kLookAgain);
  if (const auto refused = refused_until(pass, api::Role::kServer)) return pass.again_at(*refused);
  pass.create(ObjectKind::kWorkload,
              build_workload(pass.seen.job, pass.options, pass.seen.queue.priority));
}

}  // namespace

bool has_queue(const Pass& pass) {
  return pass.spec.scheduling_policy && pass.spec.scheduling_policy->queue;
}

bool is_place_unknown(const Pass& pass) {
  if (!has_queue(pass) || pass.spec.suspend || !pass.plan.status.start_time) return false;
  const auto& workload = pass.seen.queue.workload;
  if (!pass.seen.queue.known) return true;
  return workload && is_admitted(*workload) && !cannot_place(pass).empty();
}

std::optional<ConditionText> hold_of_queue(const Pass& pass) {
  if (!has_queue(pass)) return std::nullopt;
  const QueueState& queue = pass.seen.queue;
  const auto held = [](const std::string& text) {
    return ConditionText{std::string(kQueued), text};
  };
  if (!queue.known)
    return held(
        "the API server knows no Workloads: is Kueue installed, and may the operator see them?");
  if (!queue.workload) return held(entering_text(pass));
  if (holds(*queue.workload, "Evicted") && holds(*queue.workload, "QuotaReserved")) {
    return held("evicted from queue " + queue_of(pass) + ": " +
                said(*queue.workload, "Evicted", "reason") + ": " +
                said(*queue.workload, "Evicted", "message"));
  }
  if (queue.workload->queue != queue_of(pass)) return held("enters queue " + queue_of(pass));
  if (!is_admitted(*queue.workload)) return held(waiting_text(pass, *queue.workload));
  if (const std::string why = cannot_place(pass); !why.empty()) return held(why);
  return std::nullopt;
}

void keep_place(Pass& pass) {
  const auto& workload = pass.seen.queue.workload;
  if (!has_queue(pass)) {
    if (workload) remove(pass, "the job names no queue any more");
    return;
  }
  if (!pass.seen.queue.known) return pass.again_at(pass.now + kLookAgain);
  if (!pass.seen.queue.problem.empty()) pass.again_at(pass.now + kLookAgain);
  if (!workload) return make(pass);
  if (is_held_beside_its_queue(pass) || workload->queue != queue_of(pass) ||
      holds(*workload, "Finished")) {
    if (!has_pods(pass)) remove(pass, "the job enters its queue anew when it goes on");
  } else if (!holds(*workload, "QuotaReserved")) {
    ask_for_what_is_wanted(pass);
  } else if (holds(*workload, "Evicted")) {
    if (!has_pods(pass)) give_back(pass);
  } else if (holds(*workload, "Admitted")) {
    if (!tell_ready(pass)) give_back_workers(pass);
  }
}

void give_up_place(Pass& pass) {
  const auto& workload = pass.seen.queue.workload;
  if (!workload || holds(*workload, "Finished")) return;
  for (const Pod& pod : pass.seen.pods) {
    if (holds_place(pass, pod)) return;
  }
  const bool well = is_true(pass.plan.status, api::kConditionComplete);
  const auto* end =
      find_condition(pass.plan.status, well ? api::kConditionComplete : api::kConditionFailed);
  tell(pass, {"Finished", true, well ? "Succeeded" : "Failed", end->message});
}

std::optional<int> admitted_workers(const Pass& pass) {
  if (!has_queue(pass) || !pass.seen.queue.workload) return std::nullopt;
  const PodSet* workers = pod_set(pass, api::Role::kWorker);
  if (workers == nullptr) return 0;
  return std::max(0, std::min(workers->admitted, workers->wanted - workers->reclaimed));
}

int allowed_workers(const Pass& pass) {
  const int wanted = pass.spec.workers.replicas;
  return std::min(wanted, admitted_workers(pass).value_or(wanted));
}

Placement placement_of(const Pass& pass, api::Role role) {
  Placement placement;
  const PodSet* pods = pod_set(pass, role);
  if (!has_queue(pass) || pods == nullptr) return placement;
  placement.labels["kueue.x-k8s.io/podset"] = role_name(role);
  for (const std::string& flavor : pods->flavors) {
    const auto found = pass.seen.queue.flavors.find(flavor);
    if (found != pass.seen.queue.flavors.end()) placement.merge(found->second);
  }
  placement.merge(pods->added);
  if (pods->topology) placement.placed_by = pass.seen.queue.workload->name;
  return placement;
}

}  // namespace outrigger::controller
