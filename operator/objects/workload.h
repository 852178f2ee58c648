#pragma once

#include <optional>
#include <string>

#include "api/training_job.h"
#include "operator/options.h"
#include "operator/plan.h"
#include "operator/workload.h"

/// What Kueue is told of a job.
namespace outrigger::controller {

std::string workload_name(const std::string& job);

/// How many workers a job asks its queue for: as many as it may ever have without asking again.
int workers_to_ask_for(const api::WorkersSpec& workers);

/// The job's place in its queue: how many pods of each role it wants, and pods as they will be.
Json build_workload(const api::TrainingJob& job, const Options& options,
                    const std::optional<PriorityClass>& priority);

/// spec.podSets alone.
Json build_pod_sets(const api::TrainingJob& job, const Options& options);

/// Writes into a pod what its admission says about pods of its role.
void place_pod(Json& pod, const Placement& placement);

/// `conditions` with one set; the time of transition is kept where its status stays as it is.
struct WorkloadCondition {
  std::string type;
  bool holds = false;
  std::string reason;
  std::string message;
};
Json with_condition(Json conditions, const WorkloadCondition& condition, api::Time now);

}  // namespace outrigger::controller
