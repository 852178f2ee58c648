#pragma once

#include "operator/plan.h"
#include "operator/workload.h"

namespace outrigger::controller {

/// A Workload of ours. Reads what is there and never throws for what is not.
Workload read_workload(const Json& object);

/// What a ResourceFlavor asks of the pods that run on it.
Placement read_flavor(const Json& object);

}  // namespace outrigger::controller
