#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/report/history.h"
#include "cli/report/page.h"
#include "common/file.h"

namespace outrigger::cli {
namespace {

struct ReportOptions {
  std::filesystem::path folder;
  std::filesystem::path output;
};

void report(const ReportOptions& options) {
  const RunHistory history = read_history(options.folder);
  const auto output = options.output.empty() ? options.folder / "report.html" : options.output;
  const auto name = std::filesystem::absolute(options.folder).lexically_normal();
  write_file_atomically(
      output,
      report_page((name.has_filename() ? name : name.parent_path()).filename().string(), history));
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
      ->required();
  command->add_option("--output", options->output, "The page (default: report.html in the folder)");
  command->footer("Example:\n  outrigger report runs/faces");
  command->callback([options] { report(*options); });
}

}  // namespace outrigger::cli
