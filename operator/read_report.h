#pragma once

#include <optional>
#include <string>

#include "operator/observed.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// What a server's /status says; nothing where the text is no such page. Bounded by what the schema
/// of status allows: a server that speaks nonsense never makes a status that cannot be written.
std::optional<ServerReport> read_report(const std::string& text);

/// The "progress" of a process's last words: of a page's report what is known at the end.
std::optional<ServerReport> read_last_progress(const Json& progress);

}  // namespace outrigger::controller
