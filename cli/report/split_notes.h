#pragma once

#include <filesystem>

#include "cli/report/advice.h"
#include "cli/report/history.h"

namespace outrigger::cli {

/// What advice on a run goes by: its last plan, the job in its folder, as the run began with it,
/// and whether its ranks ran on one machine. A job that is not there, or that this version cannot
/// read, is one of which nothing is known. Throws IoError.
SplitNotes split_notes(const RunHistory& history, const std::filesystem::path& folder);

}  // namespace outrigger::cli
