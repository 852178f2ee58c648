#pragma once

#include <optional>
#include <string>

#include "cli/report/advice.h"
#include "cli/report/history.h"
#include "cli/sweep/sweep.h"

namespace outrigger::cli {

/// A run on one page of HTML that needs nothing else: loss, held-out figures, rate, what the device
/// waited for, plans, ranks, workers, layers, what limits the run, and a sweep of the job where
/// there was one. `name`: the job's.
std::string report_page(const std::string& name, const RunHistory& history, const SplitNotes& split,
                        const std::optional<Sweep>& swept);

/// A page in the same clothes: a title, a sentence, and HTML.
std::string page(const std::string& title, const std::string& text, const std::string& content);
/// A part of it with a heading; `content` is HTML.
std::string page_section(const std::string& title, const std::string& content);

}  // namespace outrigger::cli
