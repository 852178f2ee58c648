#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/cluster.h"
#include "api/exit_codes.h"
#include "api/launch.h"
#include "api/support.h"
#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/job_file.h"
#include "cli/measured_job.h"
#include "cli/mounts.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/plan_bounds.h"
#include "cli/plan_table.h"
#include "cli/simulation.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/thread_pool.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;

// As api/cluster.cc bounds the same of described machines.
constexpr NumberRange kCores{0.001, 1e6};
constexpr NumberRange kMegabits{0.001, 1e9};
constexpr NumberRange kMilliseconds{0, 60'000};
constexpr NumberRange kGigabytes{1e-9, 1e9};
constexpr NumberRange kPrices{0, 1e9};

struct PlanOptions {
  std::filesystem::path job;
  std::filesystem::path cluster;
  std::vector<std::string> mounts;
  std::optional<int> threads;
  std::optional<int> workers;
  double worker_cores = 2;
  double megabits = 1000;
  double milliseconds = 0.2;
  double server_megabits = 10'000;
  std::optional<double> server_memory;  // gigabytes
  std::optional<double> worker_memory;
  std::optional<double> server_price;  // an hour
  std::optional<double> worker_price;
  bool layers = false;
  api::DeviceChoice device = api::DeviceChoice::kAuto;
  std::string format = "text";
};

/// Of all ranks.
int planned_workers(const PlanOptions& options, const api::TrainingJob& job) {
  return options.workers.value_or(job.spec.workers.replicas);
}

/// The search tries shares by worker: with many it takes minutes and tells nothing new.
void check_most_workers(const PlanOptions& options, size_t workers, int ranks) {
  constexpr size_t kMostOfARank = 1000;
  const size_t most = kMostOfARank * static_cast<size_t>(ranks);
  if (workers <= most) return;
  const std::string why =
      fmt::format(": {} are too many; at most {}, {} of a rank: a search over more takes minutes",
                  workers, most, kMostOfARank);
  if (options.workers) throw api::Failure(api::ExitCode::kBadUsage, "--workers" + why);
  throw InvalidInput("spec.workers.replicas (or --workers)" + why);
}

PlannedJob measure(const PlanOptions& options, const api::TrainingJob& job) {
  api::Launch launch;
  launch.mounts = parse_mounts(options.mounts);
  launch.device = options.device;
  // Ranks of one pod share what it has, cores as gpu_server::run_ranks does it.
  const int ranks = api::ranks_per_pod(job.spec);
  const int threads = std::max(1, options.threads.value_or(available_cores()) / ranks);
  MeasuredJob told = measure_job(job, launch, threads);
  PlannedJob measured{.profile = std::move(told.profile),
                      .servers = job.spec.server.replicas,
                      .wires = told.wires,
                      .narrowed_work = std::move(told.narrowed_work),
                      .remarks = std::move(told.remarks)};
  const double decode = measured.profile.decode;
  measured.server = {.cores = told.cores,
                     .decode = decode / threads,
                     .shared = told.shared,
                     .own_cores = static_cast<double>(threads),
                     .stem_part = training::cores_at_work(measured.profile, threads) / threads,
                     .bytes_per_second = options.server_megabits * 1e6 / 8 / ranks};
  measured.server.memory =
      options.server_memory ? *options.server_memory * 1e9 : static_cast<double>(free_memory());
  measured.server.memory /= ranks;
  const double at_work = training::cores_at_work(measured.profile, options.worker_cores);
  training::WorkerRates worker{.stem_speed = at_work,
                               .decode = decode / options.worker_cores,
                               .bytes_per_second = options.megabits * 1e6 / 8,
                               .latency = options.milliseconds / 1000,
                               .cores = options.worker_cores};
  if (options.worker_memory) worker.memory = *options.worker_memory * 1e9;
  give_room(worker, options.worker_cores, measured.profile);
  if (options.worker_memory)
    check_holds_pixels("--worker-memory", *options.worker_memory * 1e9, worker,
                       measured.profile.costs);
  measured.workers.assign(static_cast<size_t>(planned_workers(options, job)), worker);
  if (options.server_price || options.worker_price)
    measured.prices = {options.server_price.value_or(0), options.worker_price.value_or(0)};
  return measured;
}

JobFile load_job(const PlanOptions& options) {
  if (options.job.empty()) throw CLI::RequiredError("job");
  JobFile file = load_job_file(options.job);
  // Before its data is looked for. Whether there is a GPU, the device says.
  api::require_supported(file.job(), {.gpu = true});
  file.check_network();
  return file;
}

void plan(const PlanOptions& options) {
  const JobFile file = load_job(options);
  const api::TrainingJob& job = file.job();
  const auto workers = static_cast<size_t>(planned_workers(options, job));
  const int ranks = api::rank_count(job.spec);
  check_workers(options.workers ? "--workers" : "spec.workers.replicas (or --workers)", workers,
                static_cast<uint32_t>(ranks));
  check_most_workers(options, workers, ranks);
  const json told = file.with([&] { return plan_table(measure(options, job)); });
  if (options.format == "json") {
    std::cout << json_text(told) << "\n";
  } else {
    print_plan_table(told, options.layers);
  }
}

/// What the options say of a job that is to be measured; empty: nothing.
std::string of_measuring(const PlanOptions& options) {
  if (!options.job.empty()) return options.job.string();
  if (options.threads) return "--threads";
  if (options.device != api::DeviceChoice::kAuto) return "--device";
  return options.mounts.empty() ? "" : "--mount";
}

/// The profile that the cluster's file names, beside it; or of the job, measured now.
training::Profile profile_for(const PlanOptions& options, const api::Cluster& cluster) {
  if (!cluster.profile) {
    if (options.job.empty())
      throw api::Failure(api::ExitCode::kBadUsage,
                         options.cluster.string() +
                             ": profile is missing, and so is a job to measure: write what "
                             "`outrigger plan job.yaml -o json` printed as profile, or name the "
                             "job on the command line");
    const JobFile file = load_job(options);
    return file.with([&] { return measure(options, file.job()).profile; });
  }
  constexpr size_t kMostBytes = size_t{16} << 20;
  const auto path = options.cluster.parent_path() / *cluster.profile;
  const std::string beside = of_measuring(options);
  if (!beside.empty())
    throw api::Failure(api::ExitCode::kBadUsage,
                       fmt::format("{}: {} names the profile of a job that was measured before; "
                                   "without that line the job is measured now",
                                   beside, options.cluster.string()));
  if (!std::filesystem::is_regular_file(path))
    throw InvalidInput(fmt::format("{}: profile: {} {}", options.cluster.string(), path.string(),
                                   std::filesystem::is_directory(path)
                                       ? "is a folder; the file of a profile is needed"
                                       : "is no file that is there"));
  return training::read_profile(read_file(path, kMostBytes), path.string());
}

void simulate(const PlanOptions& options) {
  const api::Cluster cluster = api::load_cluster(options.cluster);
  const json told = simulate_job(cluster, profile_for(options, cluster));
  if (options.format == "json") {
    std::cout << json_text(told) << "\n";
  } else {
    print_simulation(told);
  }
}

}  // namespace

void add_plan(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "plan", "Measure this machine and show what splitting a job would bring, without running it");
  const auto options = std::make_shared<PlanOptions>();
  command->add_option("job", options->job,
                      "The TrainingJob, YAML or JSON; not needed where a cluster names a profile");
  CLI::Option* simulated = command->add_option(
      "--simulate", options->cluster,
      "A cluster, YAML or JSON: run the job on it in virtual time; it says all of the machines");
  simulated->check(CLI::ExistingFile);
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->excludes(simulated);
  };
  add("-w,--workers", options->workers,
      "Workers to reckon with, of all ranks, at most 1000 of each (default: "
      "spec.workers.replicas)")
      ->check(CLI::Range(0, 10'000));
  add("--worker-cores", options->worker_cores, "Cores of each, as fast as those of this machine")
      ->capture_default_str()
      ->check(number_from(kCores));
  add("--link", options->megabits, "Megabits a second between each and the server")
      ->capture_default_str()
      ->check(number_from(kMegabits));
  add("--latency", options->milliseconds, "Milliseconds one way")
      ->capture_default_str()
      ->check(number_from(kMilliseconds));
  add("--server-link", options->server_megabits,
      "Megabits a second through a server's network card, each way, over all workers")
      ->capture_default_str()
      ->check(number_from(kMegabits));
  add("--server-memory", options->server_memory,
      "Gigabytes that the job may take in a server's pod (default: what is free here)")
      ->check(number_from(kGigabytes));
  add("--worker-memory", options->worker_memory,
      "Gigabytes that it may take on each worker (default: any)")
      ->check(number_from(kGigabytes));
  add("--server-price", options->server_price,
      "What an hour of each server costs: the table tells what an epoch does")
      ->check(number_from(kPrices));
  add("--worker-price", options->worker_price, "What an hour of each worker costs")
      ->check(number_from(kPrices));
  add_device_option(*command, options->device);
  command->add_flag("--layers", options->layers, "Print each layer's times and memory, too")
      ->excludes(simulated);
  command->add_option("--threads", options->threads, "Cores that the server uses (default: all)")
      ->check(CLI::Range(1, kMostThreads));
  add_mount_option(*command, options->mounts);
  command->add_option("-o,--format", options->format, "How to print the result")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n  outrigger plan job.yaml --workers 4 --worker-cores 8 --link 10000 --mount "
      "faces=demo/faces\n  outrigger plan job.yaml --mount faces=demo/faces -o json > "
      "profile.json\n"
      "  outrigger plan --simulate cluster.yaml");
  command->callback([options] { options->cluster.empty() ? plan(*options) : simulate(*options); });
}

}  // namespace outrigger::cli
