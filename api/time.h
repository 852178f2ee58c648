#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace outrigger::api {

/// A wall-clock time in UTC, as Kubernetes writes it: whole seconds, RFC 3339. For display and
/// deadlines of whole jobs only; never compared between machines.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

/// "2026-01-31T12:00:00Z".
std::string to_string(Time time);
/// Reads RFC 3339, with an offset or fractions (dropped); nothing where `text` is no such time.
std::optional<Time> parse_time(std::string_view text);

}  // namespace outrigger::api
