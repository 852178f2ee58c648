#pragma once

#include <optional>

#include "operator/observed.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// A pod of ours out of an API object; nothing where our labels are not on it. Reads what is there
/// and never throws for what is not.
std::optional<Pod> read_pod(const Json& object);

/// The node of a pod that should be gone; `object` is a Node.
NodeState read_node(const Json& object);

}  // namespace outrigger::controller
