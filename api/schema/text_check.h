#pragma once

#include <optional>
#include <string_view>

#include "api/field_error.h"

namespace outrigger::api::schema {

/// What makes bytes no text that a job file may be: too long, not UTF-8, control characters.
/// Nothing where it is one.
std::optional<FieldError> find_bad_text(std::string_view bytes);

}  // namespace outrigger::api::schema
