#pragma once

#include <string>

namespace outrigger::api {

/// docs/fields.md as the table of fields has it.
std::string fields_markdown();

/// docs/exit-codes.md as the table of exit codes has it.
std::string exit_codes_markdown();

}  // namespace outrigger::api
