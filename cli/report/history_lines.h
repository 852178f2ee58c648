#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "cli/report/history.h"

namespace outrigger::cli {

/// Adds what a line of metrics.jsonl, an object, tells; of a kind that is not known, nothing. Keeps
/// `most_steps` at most, of more by putting neighbours together. Throws nlohmann::json::exception
/// where a field is of another type; the line has told nothing then, or a part.
void add_line(const nlohmann::json& line, size_t most_steps, RunHistory& history);

}  // namespace outrigger::cli
