#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>

namespace outrigger::cli {

/// Writes out what a stream still holds. Throws IoError where it could not take all of it: a
/// program whose result is lost must not end as one that did its work.
void finish_output(std::ostream& out);

/// A document for standard output; names of files that are not UTF-8 have U+FFFD in place of what
/// is not, since at this point the work is done.
template <typename Json>
std::string json_text(const Json& document, int indent = -1) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace outrigger::cli
