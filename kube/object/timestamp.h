#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace outrigger::kube {

/// A moment as API objects carry it (RFC 3339, UTC).
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// The machine's wall clock: for what people read, never for deciding how much time has passed.
Timestamp wall_time();

/// metav1.Time: "2024-05-01T12:00:00Z".
std::string format_time(Timestamp time);
/// metav1.MicroTime: "2024-05-01T12:00:00.000000Z".
std::string format_micro_time(Timestamp time);

/// Either of the two, with any number of decimals (more than six are cut) and any offset from UTC;
/// nothing where the text is no such time.
std::optional<Timestamp> parse_time(std::string_view text);

}  // namespace outrigger::kube
