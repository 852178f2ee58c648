#include "operator/policy/summary.h"

#include <algorithm>
#include <string>

#include "api/names.h"
#include "operator/names.h"
#include "operator/policy/conditions.h"
#include "operator/policy/failures.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/pods.h"
#include "operator/policy/reasons.h"
#include "operator/policy/restarts.h"
#include "operator/policy/troubles.h"

namespace outrigger::controller {
namespace {

int count_if(const std::vector<const Pod*>& pods, bool (*holds)(const Pod&)) {
  return static_cast<int>(
      std::count_if(pods.begin(), pods.end(), [&](const Pod* pod) { return holds(*pod); }));
}

bool is_ready(const Pod& pod) { return is_living(pod) && pod.ready; }
bool is_placed(const Pod& pod) { return is_living(pod) && !pod.node.get().empty(); }

/// Pods of one role as they are and as they should be.
struct Tally {
  int desired = 0;
  int placed = 0;
  int ready = 0;
  int failed = 0;
  int existing = 0;  // neither over nor asked to end
};

Tally tally(const Pass& pass, api::Role role) {
  const bool server = role == api::Role::kServer;
  const auto pods = server ? current_servers(pass) : own_pods(pass, role);
  return {server ? pass.spec.server.replicas : pass.spec.workers.replicas,
          count_if(pods, is_placed), count_if(pods, is_ready), count_if(pods, is_failed),
          count_if(pods, is_living)};
}

std::string missing(const Tally& servers, const Tally& workers, int Tally::*member) {
  return std::to_string(servers.*member) + " of " + std::to_string(servers.desired) + " servers, " +
         std::to_string(workers.*member) + " of " + std::to_string(workers.desired) + " workers";
}

void tell_scheduled(Pass& pass, const Tally& servers, const Tally& workers) {
  auto trouble = placing_trouble(pass, api::Role::kServer);
  if (!trouble) trouble = placing_trouble(pass, api::Role::kWorker);
  if (trouble) {
    set_condition(pass, api::kConditionPodsScheduled, false, {trouble->reason, trouble->message});
    return;
  }
  const bool all = servers.placed >= servers.desired && workers.placed >= workers.desired;
  set_condition(pass, api::kConditionPodsScheduled, all,
                {all ? "Scheduled" : "Pending", missing(servers, workers, &Tally::placed)});
}

void tell_ready(Pass& pass, const Tally& servers, const Tally& workers) {
  const bool all = servers.ready >= servers.desired && workers.ready >= workers.desired;
  auto trouble = trouble_of(pass, api::Role::kServer);
  if (!trouble) trouble = trouble_of(pass, api::Role::kWorker);
  if (!all && trouble) {
    set_condition(pass, api::kConditionPodsReady, false, {trouble->reason, trouble->message});
    return;
  }
  set_condition(pass, api::kConditionPodsReady, all,
                {all ? "Ready" : "NotReady", missing(servers, workers, &Tally::ready)});
}

void tell_running(Pass& pass, const Tally& servers) {
  const bool seen = static_cast<int>(current_servers(pass).size()) >= servers.desired;
  if (is_creating(pass.plan.status) && !seen) return;
  const bool runs = servers.ready >= servers.desired;
  const bool was = is_true(pass.plan.status, api::kConditionRunning);
  const char* unready = has_run(pass.plan.status) ? "ReadinessLost" : kStartingServers.data();
  set_condition(pass, api::kConditionRunning, runs,
                {runs ? "ServersReady" : unready, std::to_string(servers.ready) + " of " +
                                                      std::to_string(servers.desired) +
                                                      " servers are ready"});
  if (runs && !was) pass.event("Running", "all servers are ready");
  if (runs && is_true(pass.plan.status, api::kConditionRestarting))
    set_condition(pass, api::kConditionRestarting, false, {"Restarted", "the servers run again"});
}

// A worker that an index waits to replace; the newest failure of those without a living pod.
std::optional<Why> failed_worker(const Pass& pass) {
  const auto workers = own_pods(pass, api::Role::kWorker);
  for (const Pod* pod : workers) {
    if (pod->index >= pass.spec.workers.replicas || !is_failed(*pod) || is_disrupted(*pod))
      continue;
    const bool replaced = std::any_of(workers.begin(), workers.end(), [&](const Pod* other) {
      return other->index == pod->index && is_ready(*other);
    });
    if (replaced) continue;
    const Verdict verdict = judge(pass.spec.failure_policy, *pod);
    return Why{verdict.reason, pod->name + ": " + verdict.message};
  }
  return std::nullopt;
}

void tell_degraded(Pass& pass) {
  auto trouble = failed_worker(pass);
  const auto unknown = not_supported(pass);
  if (!unknown.empty()) trouble = Why{"NotSupported", api::to_string(unknown)};
  if (!pass.seen.errors.empty()) trouble = Why{"InvalidSpec", api::to_string(pass.seen.errors)};
  if (!trouble) trouble = trouble_of(pass, api::Role::kWorker);
  const bool was = is_true(pass.plan.status, api::kConditionDegraded);
  if (trouble) {
    if (!was) pass.event("Degraded", trouble->reason + ": " + trouble->message, true);
    set_condition(pass, api::kConditionDegraded, true, {trouble->reason, trouble->message});
  } else if (find_condition(pass.plan.status, api::kConditionDegraded) != nullptr) {
    set_condition(pass, api::kConditionDegraded, false,
                  {"WorkersWell", "nothing is wrong with the workers"});
  }
}

}  // namespace

void tell_pods(Pass& pass) {
  // Then it is known whether what was refused is wanted yet.
  for (const Refusal& refusal : pass.seen.refusals) {
    if (refusal.at + refusal.patience > pass.now) pass.again_at(refusal.at + refusal.patience);
  }
  const Tally servers = tally(pass, api::Role::kServer);
  const Tally workers = tally(pass, api::Role::kWorker);
  tell_scheduled(pass, servers, workers);
  tell_ready(pass, servers, workers);
  tell_running(pass, servers);
  tell_degraded(pass);
}

void tell_numbers(Pass& pass) {
  auto& status = pass.status();
  const Tally servers = tally(pass, api::Role::kServer);
  const Tally workers = tally(pass, api::Role::kWorker);
  status.roles = {{std::string(api::kServerRole), servers.desired, servers.ready, servers.failed},
                  {std::string(api::kWorkerRole), workers.desired, workers.ready, workers.failed}};
  status.workers =
      api::WorkersStatus{workers.existing, role_selector(pass.job_name(), api::Role::kWorker),
                         std::to_string(workers.ready) + "/" + std::to_string(workers.desired)};
  status.observed_generation = pass.seen.job.metadata.generation;
  status.state = derived_state(status);
}

}  // namespace outrigger::controller
