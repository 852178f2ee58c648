#include "cli/output.h"

#include <ostream>

#include "common/error.h"

namespace outrigger::cli {

void finish_output(std::ostream& out) {
  if (out.flush()) return;
  throw IoError("standard output could not be written to its end; is its disk full?");
}

}  // namespace outrigger::cli
