#include <algorithm>
#include <string>

#include "api/names.h"
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

// From the start, or from the restart that is under way, until the servers run.
bool starts_too_slowly(Pass& pass) {
  auto& status = pass.status();
  if (has_run(status)) return false;  // a server that does nothing ends itself as hung
  const auto servers = current_servers(pass);
  if (std::any_of(servers.begin(), servers.end(),
                  [](const Pod* pod) { return pod->ready || is_over(*pod); }))
    return false;  // one that is there looks after itself; one that is over has its own policy
  const auto* running = find_condition(status, api::kConditionRunning);
  const auto* restarting = find_condition(status, api::kConditionRestarting);
  api::Time since = *status.start_time;
  for (const auto* condition : {running, restarting}) {
    if (condition != nullptr && condition->last_transition_time)
      since = std::max(since, *condition->last_transition_time);
  }
  const api::Time until = since + pass.spec.startup_deadline;
  if (pass.now < until) {
    pass.again_at(until);
    return false;
  }
  const auto trouble = trouble_of(pass, api::Role::kServer);
  fail(pass, "StartupDeadlineExceeded",
       "no server was ready within startupDeadlineSeconds, " +
           std::to_string(pass.spec.startup_deadline.count()) +
           (trouble ? ": " + trouble->reason + ", " + trouble->message : ""));
  return true;
}

}  // namespace

bool fail_by_deadline(Pass& pass) {
  return name_is_wrong(pass) || active_too_long(pass) || starts_too_slowly(pass);
}

}  // namespace outrigger::controller
