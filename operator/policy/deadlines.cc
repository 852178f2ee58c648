#include <algorithm>
#include <string>
#include <vector>

#include "api/names.h"
#include "api/roles.h"
#include "operator/policy/conditions.h"
#include "operator/policy/ends.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/pods.h"
#include "operator/policy/restarts.h"
#include "operator/policy/troubles.h"

namespace outrigger::controller {
namespace {

bool name_is_wrong(Pass& pass) {
  for (const Pod* pod : current_servers(pass)) {
    if (!pod->waiting || pod->waiting->reason != "InvalidImageName") continue;
    fail(pass, pod->waiting->reason, pod->name + ": " + pod->waiting->message);
    return true;
  }
  return false;
}

bool active_too_long(Pass& pass) {
  if (!pass.spec.active_deadline) return false;
  const api::Time until = *pass.status().start_time + *pass.spec.active_deadline;
  if (pass.now < until) {
    pass.again_at(until);
    return false;
  }
  fail(pass, "DeadlineExceeded",
       "activeDeadlineSeconds is " + std::to_string(pass.spec.active_deadline->count()));
  return true;
}

int started_servers(const std::vector<const Pod*>& servers) {
  return static_cast<int>(std::count_if(
      servers.begin(), servers.end(), [](const Pod* pod) { return pod->ready || is_done(*pod); }));
}

// Ours are ready after a step, which all of them take together: one tells of all, and from then on
// looks after itself. One of the user's own tells of itself alone.
bool have_started(const Pass& pass, const std::vector<const Pod*>& servers) {
  if (std::any_of(servers.begin(), servers.end(), [](const Pod* pod) { return is_failed(*pod); }))
    return true;  // what failed has its own policy
  const bool external = pass.spec.server.engine == api::Engine::kExternal;
  return started_servers(servers) >= (external ? pass.spec.server.replicas : 1);
}

std::string tell_started(const Pass& pass, const std::vector<const Pod*>& servers) {
  const int started = started_servers(servers);
  if (started == 0) return "no server was";
  return std::to_string(started) + " of " + std::to_string(pass.spec.server.replicas) +
         " servers were";
}

// From the start, or from the restart that is under way. Who was put out of its place has done
// nothing wrong and may find no other for long (activeDeadlineSeconds alone bounds that): from when
// the last server got its own. Nothing: one has none yet.
std::optional<api::Time> starts_since(const Pass& pass, const std::vector<const Pod*>& servers) {
  const auto& status = pass.plan.status;
  api::Time since = *status.start_time;
  for (const auto type : {api::kConditionRunning, api::kConditionRestarting}) {
    const auto* condition = find_condition(status, type);
    if (condition != nullptr && condition->last_transition_time)
      since = std::max(since, *condition->last_transition_time);
  }
  if (!was_put_out(status)) return since;
  if (servers.size() < static_cast<size_t>(pass.spec.server.replicas)) return std::nullopt;
  for (const Pod* pod : servers) {
    if (!pod->taken) return std::nullopt;
    since = std::max(since, *pod->taken);
  }
  return since;
}

// Until the servers run.
bool starts_too_slowly(Pass& pass) {
  auto& status = pass.status();
  if (has_run(status)) return false;  // a server that does nothing ends itself as hung
  const auto servers = current_servers(pass);
  if (have_started(pass, servers)) return false;
  const auto since = starts_since(pass, servers);
  if (!since) return false;
  const api::Time until = *since + pass.spec.startup_deadline;
  if (pass.now < until) {
    pass.again_at(until);
    return false;
  }
  const auto trouble = trouble_of(pass, api::Role::kServer);
  fail(pass, "StartupDeadlineExceeded",
       tell_started(pass, servers) + " ready within startupDeadlineSeconds, " +
           std::to_string(pass.spec.startup_deadline.count()) +
           (trouble ? ": " + trouble->reason + ", " + trouble->message : ""));
  return true;
}

}  // namespace

bool fail_by_deadline(Pass& pass) {
  return name_is_wrong(pass) || active_too_long(pass) || starts_too_slowly(pass);
}

}  // namespace outrigger::controller
