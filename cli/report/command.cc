#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/option_checks.h"
#include "cli/report/history.h"
#include "cli/report/page.h"
#include "cli/report/split_notes.h"
#include "cli/sweep/sweep.h"
#include "common/error.h"
#include "common/file.h"

namespace outrigger::cli {
namespace {

constexpr const char* kMetrics = "metrics.jsonl";

struct ReportOptions {
  std::filesystem::path folder;
  std::filesystem::path output;
  std::filesystem::path sweep;
};

/// With a name at its end, wherever it is called from.
std::filesystem::path named(const std::filesystem::path& folder) {
  const auto path = std::filesystem::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/// The sweep that was asked for, or the one that the run was a part of.
std::optional<Sweep> find_sweep(const ReportOptions& options) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  const bool asked = !options.sweep.empty();
  if (!asked && !named(options.folder).filename().string().starts_with(kRunOfSweep))
    return std::nullopt;
  const auto path = (asked ? options.sweep : named(options.folder).parent_path()) / "sweep.json";
  if (!asked && !std::filesystem::exists(path)) return std::nullopt;
  return read_sweep(read_file(path, kMostBytes), path.string());
}

/// Of a folder that is no run's: those in it may be.
std::string runs_in(const std::filesystem::path& folder) {
  std::vector<std::string> runs;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::exists(at->path() / kMetrics, ignored))
      runs.push_back(at->path().string());
  }
  if (runs.empty()) return "wanted is <spec.output.path>/<name of the job>";
  return "did you mean " + *std::ranges::min_element(runs) + "?";
}

void report(const ReportOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(options.folder / kMetrics, error))
    throw InvalidInput(options.folder.string() + " is no run's folder: it has no " + kMetrics +
                       "; " + runs_in(options.folder));
  const RunHistory history = read_history(options.folder);
  const auto output = options.output.empty() ? options.folder / "report.html" : options.output;
  const std::string name = named(options.folder).filename().string();
  write_file_atomically(output, report_page(name, history, split_notes(history, options.folder),
                                            find_sweep(options)));
  std::cout << output.string() << "\n";
}

}  // namespace

void add_report(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "report", "Write what a run did, and what limits it, as one page of HTML");
  const auto options = std::make_shared<ReportOptions>();
  command
      ->add_option("folder", options->folder,
                   "The run's folder: <spec.output.path>/<name of the job>")
      ->required()
      ->check(not_empty());
  command->add_option("--output", options->output, "The page (default: report.html in the folder)")
      ->check(not_empty())
      ->check(no_folder("report.html"));
  command->add_option("--sweep", options->sweep,
                      "A folder that `outrigger sweep` made, whose curves go into the page "
                      "(default: the one that the run lies in)");
  command->footer(
      "Examples:\n  outrigger report runs/faces\n  outrigger report runs/faces --sweep sweep");
  command->callback([options] { report(*options); });
}

}  // namespace outrigger::cli
