#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/schema.h"

namespace outrigger::api::schema {

// What is wrong with one value under the rules of its field: a message with the value and what is
// allowed, or nothing.
std::optional<std::string> number_fault(double value, const Field& field);
std::optional<std::string> integer_fault(int64_t value, const Field& field);
std::optional<std::string> text_fault(std::string_view value, const Field& field);
std::optional<std::string> count_fault(size_t items, const Field& field);

}  // namespace outrigger::api::schema
