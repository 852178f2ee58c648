#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/cluster.h"
#include "api/launch.h"
#include "api/parse.h"
#include "api/support.h"
#include "cli/commands.h"
#include "cli/measured_job.h"
#include "cli/mounts.h"
#include "cli/simulation.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/thread_pool.h"
#include "training/planner/batch_advice.h"
#include "training/planner/memory.h"
#include "training/planner/planner.h"
#include "training/simulator/trial.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;
using training::Candidate;

struct PlanOptions {
  std::filesystem::path job;
  std::filesystem::path cluster;
  std::vector<std::string> mounts;
  std::optional<int> threads;
  std::optional<int> workers;
  double worker_cores = 2;
  double megabits = 1000;
  double milliseconds = 0.2;
  std::optional<double> server_memory;  // gigabytes
  std::optional<double> worker_memory;
  std::string format = "text";
};

/// All that the table is made from.
struct Measured {
  training::Profile profile;
  training::ServerRates server;
  std::vector<training::WorkerRates> workers;
};

Measured measure(const PlanOptions& options, const api::TrainingJob& job) {
  api::Launch launch;
  launch.mounts = parse_mounts(options.mounts);
  const int threads = options.threads.value_or(available_cores());
  Measured measured;
  measured.profile = measure_job(job, launch, threads);
  const double decode = measured.profile.decode;
  measured.server = {
      .cores = static_cast<double>(threads), .decode = decode / threads, .shared = true};
  const auto free =
      static_cast<double>(available_memory() - std::min(available_memory(), used_memory()));
  measured.server.memory = options.server_memory ? *options.server_memory * 1e9 : free;
  training::WorkerRates worker{.stem_speed = options.worker_cores,
                               .decode = decode / options.worker_cores,
                               .bytes_per_second = options.megabits * 1e6 / 8,
                               .latency = options.milliseconds / 1000};
  if (options.worker_memory) worker.memory = *options.worker_memory * 1e9;
  measured.workers.assign(static_cast<size_t>(options.workers.value_or(job.spec.workers.replicas)),
                          worker);
  return measured;
}

/// Bytes by what takes them, and their sum.
json to_json(const std::vector<training::MemoryPart>& parts) {
  json told{{"total", total(parts)}};
  for (const training::MemoryPart& part : parts) told[part.what] = part.bytes;
  return told;
}

/// Cuts that the job's bounds allow and memory does not, with what they need.
json left_out(const Measured& measured) {
  json list = json::array();
  const training::JobCosts& costs = measured.profile.costs;
  for (size_t cut = 0; cut < costs.cuts.size(); ++cut) {
    std::string why;
    bool any = false;
    const uint32_t first = cut == 0 ? 0 : 1;
    for (uint32_t away = first; away <= (cut == 0 ? 0 : costs.micro_batches); ++away) {
      const std::string misfit =
          training::misfit(costs, measured.server, measured.workers, {cut, away});
      any |= misfit.empty();
      if (why.empty()) why = misfit;
    }
    if (!any) list.push_back({{"cut", costs.cuts[cut].name}, {"why", why}});
  }
  return list;
}

json row_of(const Measured& measured, const Candidate& one, double unsplit) {
  const training::CutCosts& cut = measured.profile.costs.cuts[one.choice.cut];
  const double away = one.choice.away;
  return {{"cut", cut.name},
          {"sharePercent", 100 * one.choice.away / measured.profile.costs.micro_batches},
          {"stemCoreMilliseconds", 1e3 * (cut.stem_forward + cut.stem_backward)},
          {"headCoreMilliseconds", 1e3 * cut.head},
          {"bytesToServer",
           away * (cut.activations + (cut.trains ? cut.weights : 0)) +
               (measured.profile.costs.micro_batches - away) * measured.profile.costs.pixels},
          {"bytesToWorkers",
           away * cut.gradients +
               (one.choice.away > 0 && cut.trains ? measured.workers.size() * cut.weights : 0)},
          {"secondsPerStep", one.prediction.seconds},
          {"imagesPerSecond", measured.profile.batch / one.prediction.seconds},
          {"serverMemory",
           to_json(server_memory(measured.profile.costs, one.choice, measured.workers.size()))},
          {"workerMemory",
           to_json(worker_memory(measured.profile.costs, one.choice, measured.workers.size()))},
          {"bound", to_string(one.prediction.bound)},
          {"timesUnsplit", unsplit / one.prediction.seconds}};
}

json table(const Measured& measured) {
  const auto trial = training::by_simulation(measured.profile.costs);
  const auto all = tried_candidates(
      {measured.profile.costs, measured.profile.options, measured.server, measured.workers}, trial);
  if (all.empty())
    throw InvalidInput(
        "no plan fits into the memory: cut Input " +
        training::misfit(measured.profile.costs, measured.server, measured.workers, {}) +
        "; a smaller spec.training.microBatchSize would help");
  auto alone = predict(measured.profile.costs, measured.server, {}, {});
  alone.seconds =
      trial.seconds({measured.profile.costs, measured.profile.options, measured.server, {}}, {});
  json rows = json::array();
  size_t best = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    rows.push_back(row_of(measured, all[i], alone.seconds));
    if (all[i].prediction.seconds < all[best].prediction.seconds) best = i;
  }
  return {{"workers", measured.workers.size()},
          {"decodeCoreMilliseconds", 1e3 * measured.server.decode * measured.server.cores},
          {"imagesPerSecondAlone", measured.profile.batch / alone.seconds},
          {"boundAlone", to_string(alone.bound)},
          {"cuts", rows},
          {"leftOut", left_out(measured)},
          {"advice", batch_advice(measured.profile, measured.server, measured.workers, all[best])},
          {"serverMemoryFree", measured.server.memory},
          {"choice", best},
          {"profile", json::parse(to_json(measured.profile))}};
}

void print(const json& told) {
  std::cout << fmt::format(
      "The server alone: {:.1f} images/s, bound by {}; decoding takes {:.1f} core-ms a "
      "micro-batch.\nWith {} workers, the best share of every cut:\n\n"
      "  {:<20} {:>5} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9} {:>7}  bound by\n",
      told["imagesPerSecondAlone"].get<double>(), told["boundAlone"].get<std::string>(),
      told["decodeCoreMilliseconds"].get<double>(), told["workers"].get<size_t>(), "cut", "share",
      "stem ms", "head ms", "MB up", "MB down", "server MB", "worker MB", "images/s", "times");
  size_t index = 0;
  for (const json& row : told["cuts"]) {
    std::cout << fmt::format(
        "{} {:<20} {:>4}% {:>9.1f} {:>9.1f} {:>10.2f} {:>10.2f} {:>9.0f} {:>9.0f} {:>9.1f} "
        "{:>6.2f}x  {}\n",
        index++ == told["choice"].get<size_t>() ? '>' : ' ', row["cut"].get<std::string>(),
        row["sharePercent"].get<int>(), row["stemCoreMilliseconds"].get<double>(),
        row["headCoreMilliseconds"].get<double>(), row["bytesToServer"].get<double>() / 1e6,
        row["bytesToWorkers"].get<double>() / 1e6, row["serverMemory"]["total"].get<double>() / 1e6,
        row["workerMemory"]["total"].get<double>() / 1e6, row["imagesPerSecond"].get<double>(),
        row["timesUnsplit"].get<double>(), row["bound"].get<std::string>());
  }
  for (const json& one : told["leftOut"])
    std::cout << fmt::format("  {:<20} does not fit: {}\n", one["cut"].get<std::string>(),
                             one["why"].get<std::string>());
  const json& best = told["cuts"][told["choice"].get<size_t>()];
  if (best["timesUnsplit"].get<double>() < 1.02) {
    std::cout << "\nWorkers would not pay here: " << best["bound"].get<std::string>()
              << " is the limit with and without them.\n";
  }
  for (const json& one : told["advice"]) std::cout << "\n" << one.get<std::string>() << "\n";
  std::cout
      << "\nmilliseconds are of one core for a micro-batch, bytes are of a step; `run` goes on "
         "measuring and moves the cut.\n";
}

api::TrainingJob load_job(const PlanOptions& options) {
  if (options.job.empty())
    throw InvalidInput("a TrainingJob is needed; see `outrigger plan --help`");
  api::TrainingJob job = api::load_training_job(options.job);
  api::require_supported(job, {});
  return job;
}

void plan(const PlanOptions& options) {
  const json told = table(measure(options, load_job(options)));
  if (options.format == "json") {
    std::cout << told << "\n";
  } else {
    print(told);
  }
}

/// The profile that the cluster's file names, beside it; or of the job, measured now.
training::Profile profile_for(const PlanOptions& options, const api::Cluster& cluster) {
  if (!cluster.profile) return measure(options, load_job(options)).profile;
  constexpr size_t kMostBytes = size_t{16} << 20;
  const auto path = options.cluster.parent_path() / *cluster.profile;
  return training::read_profile(read_file(path, kMostBytes), path.string());
}

void simulate(const PlanOptions& options) {
  const api::Cluster cluster = api::load_cluster(options.cluster);
  const json told = simulate_job(cluster, profile_for(options, cluster));
  if (options.format == "json") {
    std::cout << told << "\n";
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
  command->add_option("--simulate", options->cluster,
                      "A cluster, YAML or JSON: run the job on it in virtual time");
  command->add_option("-w,--workers", options->workers,
                      "Workers to reckon with (default: spec.workers.replicas)");
  command
      ->add_option("--worker-cores", options->worker_cores,
                   "Cores of each, as fast as those of this machine")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--link", options->megabits, "Megabits a second between each and the server")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--latency", options->milliseconds, "Milliseconds one way")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--server-memory", options->server_memory,
                   "Gigabytes that the job may take there (default: what is free here)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--worker-memory", options->worker_memory,
                   "Gigabytes that it may take on each worker (default: any)")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", options->threads, "Cores that the server uses (default: all)")
      ->check(CLI::PositiveNumber);
  command->add_option("-m,--mount", options->mounts, kMountHelp);
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
