#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/exit_codes.h"
#include "api/launch.h"
#include "api/support.h"
#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/job_file.h"
#include "cli/local_run.h"
#include "cli/mounts.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "common/error.h"
#include "common/log.h"
#include "common/stop_signal.h"

namespace outrigger::cli {
namespace {

struct RunCommandOptions {
  LocalRunOptions run;
  std::vector<std::string> mounts;
  std::string output = "text";
};

void tell(const RunCommandOptions& options, const LocalRunResult& result) {
  const auto weights = result.directory / "weights.safetensors";
  const bool done = result.exit_status == 0;
  if (options.output == "json") {
    nlohmann::json told{{"exitStatus", result.exit_status},
                        {"directory", result.directory.string()},
                        {"workerRestarts", result.worker_restarts}};
    if (done) told["weights"] = weights.string();
    std::cout << json_text(told) << "\n";
    return;
  }
  if (!done) return;
  if (options.run.emulate) {
    std::cout << "\nDone. Its machines were emulated: nothing was trained.\n";
    return;
  }
  std::cout
      << "\nDone. The weights: " << weights.string() << "\n"
      << "  outrigger evaluate " << weights.string()
      << " --data FOLDER      how good it is on other photos\n"
      << "  outrigger embed " << weights.string() << " PHOTO…               embeddings of photos\n"
      << "  PyTorch: safetensors.torch.load_file(…) into the same architecture, strict=True\n";
}

void run(RunCommandOptions& options) {
  options.run.mounts = parse_mounts(options.mounts);
  const JobFile file = load_job_file(options.run.job_file);
  const api::TrainingJob& job = file.job();
  // Only the server knows whether it has a GPU, and says what is missing.
  api::require_supported(job, {.gpu = true});
  file.check_network();
  api::check_mounts(job, options.run.mounts);
  StopSignal stop;
  log::set_process_name("run");
  const LocalRunResult result = run_locally(options.run, job, stop.token());
  tell(options, result);
  if (result.exit_status == 0) return;
  const auto known = api::find_exit_code(result.exit_status);
  throw CLI::RuntimeError(known || result.exit_status >= 128 ? result.exit_status : 1);
}

void add_cores(CLI::App& command, LocalRunOptions& run) {
  const CLI::Range counts(1, kMostThreads);
  command
      .add_option("--threads", run.threads, "Cores of each server (default: all, shared evenly)")
      ->check(counts);
  command
      .add_option("--worker-threads", run.worker_threads,
                  "Cores of each worker (default: all, shared evenly)")
      ->check(counts);
}

void add_experiments(CLI::App& command, LocalRunOptions& run) {
  const CLI::Range counts(1, 1'000'000);
  CLI::Option* emulate =
      command
          .add_option("--emulate", run.emulate,
                      "For experiments: compute nothing, take the times of a profile (outrigger "
                      "plan -o json)")
          ->check(CLI::ExistingFile);
  command
      .add_option(
          "--device-cores", run.device_cores,
          "How many cores of the profile's machine the emulated device is worth; of its GPUs "
          "where it had one")
      ->capture_default_str()
      ->check(counts)
      ->needs(emulate);
  command.add_option("--worker-cores", run.worker_cores, "And each emulated worker")
      ->capture_default_str()
      ->check(counts)
      ->needs(emulate);
  command
      .add_option("--link-megabits", run.link_megabits,
                  "For experiments: what links carry a second, each way; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--link-milliseconds", run.link_milliseconds,
                  "For experiments: the delay of links, each way")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
}

}  // namespace

void add_run(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("run", "Train a job on this machine: a server and worker processes");
  const auto options = std::make_shared<RunCommandOptions>();
  command->add_option("job", options->run.job_file, "The TrainingJob, YAML or JSON")
      ->required()
      ->check(not_empty());
  command
      ->add_option("-w,--workers", options->run.workers,
                   "Worker processes; 0: the server does it all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  add_mount_option(*command, options->mounts);
  command->add_flag("--resume", options->run.resume,
                    "Go on from the newest checkpoint, if there is one");
  command->add_option("--output", options->run.output, "Instead of spec.output.path")
      ->check(not_empty());
  add_device_option(*command, options->run.device);
  add_cores(*command, options->run);
  add_experiments(*command, options->run);
  command->add_option("--log-level", options->run.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  command->add_option("-o,--format", options->output, "What the end prints: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Ctrl-C or SIGTERM stops the run after a checkpoint (exit status 20); --resume goes on from "
      "there, with as many\n"
      "workers as you like. For workers on other machines start `outrigger-gpu-server` and "
      "`outrigger-worker`\n"
      "yourself (README, \"Use it\").\n\n"
      "Example:\n  outrigger run manifests/examples/faces-local.yaml --workers 2 --mount "
      "faces=demo/faces");
  command->callback([options] { run(*options); });
}

}  // namespace outrigger::cli
