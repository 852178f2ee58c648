#pragma once

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Conditions that say how the pods of a started job are: PodsScheduled, PodsReady, Running,
/// Restarting, Degraded.
void tell_pods(Pass& pass);

/// Numbers by role, what the scale subresource shows, the generation, and the state for display.
void tell_numbers(Pass& pass);

}  // namespace outrigger::controller
