#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outrigger::api::schema {

/// What a scalar without quotes is to the YAML readers around us (YAML 1.1 and 1.2 differ, so what
/// they read differently is kAmbiguous: yes, 010, 0x1F, 1_000).
enum class Look { kText, kNull, kBoolean, kInteger, kNumber, kAmbiguous };
Look look_of(std::string_view plain);

/// A decimal integer without superfluous zeros; nothing where it is none or does not fit.
std::optional<int64_t> parse_integer(std::string_view text);
/// A finite decimal number.
std::optional<double> parse_number(std::string_view text);
/// The shortest text that reads back to the same number; whole numbers in digits alone.
std::string format_number(double value);
/// In double quotes, cut off where it is long; for messages.
std::string in_quotes(std::string_view text);

}  // namespace outrigger::api::schema
