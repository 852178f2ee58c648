#pragma once

#include <string>

#include "cli/report/history.h"

namespace outrigger::cli {

/// Who did the work, as sections of a page: ranks where there are several, workers, layers.
std::string work_sections(const RunHistory& history);

}  // namespace outrigger::cli
