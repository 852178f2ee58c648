#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "api/exit_codes.h"
#include "api/support.h"
#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/job_file.h"
#include "cli/mounts.h"
#include "cli/option_checks.h"
#include "cli/sweep/sweep.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

struct SweepCommandOptions {
  SweepOptions sweep;
  std::string cut;
  std::vector<std::string> shares;
  std::vector<std::string> mounts;
  std::string format = "text";
};

void print(const Sweep& sweep, const std::filesystem::path& page) {
  std::cout << fmt::format(
      "cut {}, {} workers; the stem is {:.0f} % of the device's work; images a second:\n\n"
      "  {:>5} {:>6} {:>10} {:>10} {:>10} {:>8}\n",
      sweep.cut, sweep.workers, 100 * sweep.stem_part, "share", "stems", "measured", "predicted",
      "Amdahl", "stall");
  for (const SweepPoint& one : sweep.points) {
    if (one.left_out.empty())
      std::cout << fmt::format("  {:>4}% {:>6} {:>10.1f} {:>10.1f} {:>10.1f} {:>7.1f}%\n",
                               one.share_percent, one.away, one.measured, one.predicted, one.bound,
                               one.stall_percent);
    else
      std::cout << fmt::format("  {:>4}% left out: {}\n", one.share_percent, one.left_out);
  }
  std::cout << "\n" << page.string() << "\n";
}

std::optional<int> share_of(const std::string& text) {
  int percent = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = fault == std::errc{} && end == text.data() + text.size();
  return whole && percent >= 0 && percent <= 100 ? std::optional(percent) : std::nullopt;
}

CLI::Validator share_or_file() {
  const auto check = [](const std::string& text) -> std::string {
    std::error_code ignored;
    if (share_of(text) || std::filesystem::is_regular_file(text, ignored)) return "";
    return "\"" + text + "\" is no whole number from 0 to 100, nor the job's file";
  };
  return CLI::Validator(check, "");
}

/// An option of several values takes the job's file, too, where that stands behind them.
void take_shares(SweepCommandOptions& options) {
  if (options.shares.empty()) {
    if (options.sweep.job_file.empty()) throw CLI::RequiredError("job");
    return;
  }
  if (options.sweep.job_file.empty() && !share_of(options.shares.back())) {
    options.sweep.job_file = options.shares.back();
    options.shares.pop_back();
  }
  if (options.sweep.job_file.empty()) throw CLI::RequiredError("job");
  std::vector<int> shares;
  for (const std::string& text : options.shares) {
    const auto share = share_of(text);
    if (!share)
      throw CLI::ValidationError("--shares", "\"" + text + "\" is no whole number from 0 to 100");
    shares.push_back(*share);
  }
  if (shares.empty()) throw CLI::ValidationError("--shares", "a number from 0 to 100 is needed");
  options.sweep.shares = std::move(shares);
}

void add_shares(CLI::App& command, SweepCommandOptions& options) {
  command
      .add_option("--shares", options.shares,
                  "Percent of the stems on workers, 0 to 100 (default: 0,25,50,75,100)")
      ->delimiter(',')
      ->type_name("INT")
      ->check(share_or_file());
}

/// The job with another cut, as if it named that itself.
api::TrainingJob with_cut(api::TrainingJob job, const std::string& cut) {
  if (cut == api::kCutInput)
    throw InvalidInput(
        "--cut: Input has no stems to share out; a layer is needed, or Auto for the one that the "
        "planner likes best");
  job.spec.split.cut = cut;
  job.spec.split.share_percent.reset();  // each run has its own
  if (const auto fault = network_fault(job)) throw InvalidInput("--cut: " + fault->message);
  return job;
}

Sweep sweep(const SweepCommandOptions& options, const JobFile& file) {
  if (!options.cut.empty()) return sweep(options.sweep, with_cut(file.job(), options.cut));
  file.check_network();
  return file.with([&] { return sweep(options.sweep, file.job()); });
}

void run(SweepCommandOptions& options) {
  take_shares(options);
  options.sweep.mounts = parse_mounts(options.mounts);
  const JobFile file = load_job_file(options.sweep.job_file);
  // Only the server knows whether it has a GPU, and says what is missing.
  api::require_supported(file.job(), {.gpu = true});
  log::set_process_name("sweep");
  const Sweep told = sweep(options, file);
  if (options.format == "json") {
    std::cout << to_json(told) << "\n";
  } else {
    print(told, options.sweep.output / kSweepPage);
  }
  if (told.exit_status == 0) return;
  const bool kept = api::find_exit_code(told.exit_status) || told.exit_status >= 128;
  throw CLI::RuntimeError(kept ? told.exit_status : 1);
}

}  // namespace

void add_sweep(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "sweep", "Run a job with every share of its stems on workers, and draw what it brings");
  const auto options = std::make_shared<SweepCommandOptions>();
  SweepOptions& sweep = options->sweep;
  command->add_option("job", sweep.job_file, "The TrainingJob, YAML or JSON")->check(not_empty());
  command->add_option("--output", sweep.output, "A folder for the runs and sweep.html; it is made")
      ->required()
      ->check(not_empty());
  command
      ->add_option(
          "--cut", options->cut,
          "A layer, or Auto for the one that the planner likes best (default: the job's; for "
          "Input that, too)")
      ->check(not_empty());
  add_shares(*command, *options);
  command->add_option("-w,--workers", sweep.workers, "Worker processes")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--steps", sweep.steps,
                   "Of each run; the first third does not count (default: some seconds' by the "
                   "model, 30 at least; of slow steps a minute's, 6 at least)")
      ->check(CLI::Range(6, 1'000'000));
  command->add_option("--rounds", sweep.rounds, "How often each share is run; the median counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--threads", sweep.threads, "Cores of the server (default: shared evenly)")
      ->check(CLI::Range(1, kMostThreads));
  command
      ->add_option("--worker-threads", sweep.worker_threads,
                   "Cores of each worker (default: shared evenly)")
      ->check(CLI::Range(1, kMostThreads));
  add_device_option(*command, sweep.device);
  add_mount_option(*command, options->mounts);
  command->add_option("-o,--format", options->format, "How to print the result")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Example:\n  outrigger sweep job.yaml --output sweep --workers 2 --mount "
      "faces=demo/faces");
  command->callback([options] { run(*options); });
}

}  // namespace outrigger::cli
