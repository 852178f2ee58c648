#pragma once

#include "api/training_job.h"
#include "operator/options.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Gives a server's container what the cluster has for ranks that exchange gradients between pods,
/// where the job's GPUs are in several. The container's own words win: a resource that it limits or
/// requests, a variable that it names, a list of added capabilities.
void add_rdma(Json& container, const api::TrainingJob& job, const RdmaOptions& rdma);

}  // namespace outrigger::controller
