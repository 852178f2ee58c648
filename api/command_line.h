#pragma once

#include <span>

#include "api/launch.h"

namespace outrigger::api {

/// parse_launch for the main of a server or a worker: also wants what such a program cannot do
/// without (--job, --server). Throws a Failure of kBadUsage where something is missing or wrong.
Launch read_command_line(Role role, std::span<const char* const> arguments,
                         const Environment& environment = system_environment);

}  // namespace outrigger::api
