#pragma once

#include <optional>

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Why pods of a role are not all running, the gravest first: refused by the API server, without a
/// node, or with a container that cannot start. One word and a sentence that names the pod.
std::optional<Why> trouble_of(const Pass& pass, api::Role role);

/// The same where it keeps pods from being made or placed.
std::optional<Why> placing_trouble(const Pass& pass, api::Role role);

}  // namespace outrigger::controller
