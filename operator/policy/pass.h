#pragma once

#include <string>
#include <utility>

#include "operator/observed.h"
#include "operator/options.h"
#include "operator/plan.h"

/// The policies of the operator, a file each. Each looks at what was observed and adds to the plan.
namespace outrigger::controller {

/// One pass over one job: what every policy reads and writes. Lives while `plan` runs.
struct Pass {
  Pass(const Observed& observed, const Options& given, api::Time at)
      : seen(observed), spec(observed.job.spec), options(given), now(at) {
    if (observed.job.status) plan.status = *observed.job.status;
  }

  const Observed& seen;
  const api::TrainingJobSpec& spec;
  const Options& options;
  const api::Time now;
  Plan plan;
  bool all_is_planned = false;  // what is wanted and is not there is among the plan's actions

  api::TrainingJobStatus& status() { return plan.status; }
  const std::string& job_name() const { return seen.job.metadata.name; }
  const std::string& job_uid() const { return seen.job.metadata.uid; }
  /// Whether the pod is this job's, and not a former one's of the same name.
  bool is_own(const Pod& pod) const { return pod.job_uid == job_uid(); }

  void create(ObjectKind kind, Json object) {
    plan.actions.push_back(Create{kind, std::move(object)});
  }
  /// Asks a pod to end, once.
  void remove(const Pod& pod, std::string why) {
    if (pod.deleting) return;
    plan.actions.push_back(Remove{ObjectKind::kPod, pod.name, pod.uid, {}, std::move(why)});
  }
  void event(std::string reason, std::string message, bool warning = false) {
    plan.events.push_back({warning, std::move(reason), std::move(message)});
  }
  /// Looks again at `time` at the latest.
  void again_at(api::Time time) {
    if (!plan.look_again || time < *plan.look_again) plan.look_again = time;
  }
};

}  // namespace outrigger::controller
