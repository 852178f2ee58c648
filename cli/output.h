#pragma once

#include <iosfwd>

namespace outrigger::cli {

/// Writes out what a stream still holds. Throws IoError where it could not take all of it: a
/// program whose result is lost must not end as one that did its work.
void finish_output(std::ostream& out);

}  // namespace outrigger::cli
