#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/run_policy.h"
#include "operator/plan.h"
#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Reason of a failure by the cluster: drain, preemption, eviction, spot.
inline constexpr std::string_view kDisrupted = "Disrupted";

/// What follows a pod's failure: the first rule of failurePolicy that fits decides, else a
/// disruption by the cluster restarts without being counted, else the table of exit codes decides.
/// A worker that no rule names is replaced, whatever it died of.
struct Verdict {
  api::FailureAction action = api::FailureAction::kRestartJob;
  bool counted = true;
  bool by_rule = false;
  std::string reason;   // one word: "OOMKilled", "NumericalError", "Disrupted", "ExitCode3"
  std::string message;  // the process's last words, or the kubelet's
};
Verdict judge(const api::FailurePolicy& policy, const Pod& pod);

/// The restarts that follow by that table, of which some are to be expected in every cluster.
std::vector<RestartNote> usual_restarts();

/// The entry of status.lastFailure.
api::FailureStatus failure_of(const Pod& pod, const Verdict& verdict, api::Time now);

}  // namespace outrigger::controller
