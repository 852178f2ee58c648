#pragma once

#include <optional>
#include <string>

#include "operator/observed.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// What a server's /status says; nothing where the text is no such page. Bounded by what the schema
/// of status allows: a server that speaks nonsense never makes a status that cannot be written.
std::optional<ServerReport> read_report(const std::string& text);

/// The "progress" in it, and in a process's last words.
std::optional<api::ProgressStatus> read_progress(const Json& progress);

}  // namespace outrigger::controller
