#pragma once

#include <optional>

#include "kube/client/api_error.h"
#include "operator/observed.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Why the API server did not create an object, from its answer. Not for AlreadyExists, which needs
/// a look at what is there.
RefusalCause cause_of(const kube::ApiError& error);

/// Whether the API server did not get the word of somebody's admission webhook, or one denies with
/// such a code. That is a 500, but this object's alone, and may last: so it is refused, and people
/// are told why.
bool is_of_webhook(const kube::ApiError& error);

/// What an object that has our name is: ours (nothing), a leftover of a former job of that name, or
/// somebody else's.
std::optional<RefusalCause> collision_with(const Json& object, const api::Metadata& job);

}  // namespace outrigger::controller
