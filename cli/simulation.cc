#include "cli/simulation.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "cli/plan_bounds.h"
#include "cli/plan_table.h"
#include "cli/report/advice.h"
#include "common/error.h"
#include "common/log.h"
#include "training/planner/batch_advice.h"
#include "training/planner/model/memory.h"
#include "training/planner/reason.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;

constexpr double kBytesAMegabit = 1e6 / 8;
constexpr double kBytesAGigabyte = 1e9;

/// Steps that count: behind the planner's search and the warm-up, or the last half of few.
uint64_t first_counted(const training::SimulationResult& result) {
  constexpr uint64_t kSettling = 50;
  return std::min<uint64_t>(kSettling, result.steps.size() / 2);
}

json stalls_of(const training::SimulationResult& result, uint64_t from, double seconds) {
  json stalls = json::object();
  for (size_t cause = 0; cause < feed::kStallCauses; ++cause) {
    double sum = 0;
    for (uint64_t i = from; i < result.steps.size(); ++i) sum += result.steps[i].stalls[cause];
    stalls[feed::to_string(static_cast<feed::StallCause>(cause))] = 100 * sum / seconds;
  }
  return stalls;
}

json groups_of(const training::SimulatedCluster& cluster,
               const training::SimulationResult& result) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> groups;
  uint64_t all = 0;
  for (size_t i = 0; i < cluster.workers.size(); ++i) {
    auto& group = groups[cluster.workers[i].name];
    ++group.first;
    group.second += result.micro_batches[i];
    all += result.micro_batches[i];
  }
  json told = json::array();
  for (const auto& [name, group] : groups)
    told.push_back({{"name", name},
                    {"workers", group.first},
                    {"microBatches", group.second},
                    {"percent", 100.0 * static_cast<double>(group.second) /
                                    static_cast<double>(std::max<uint64_t>(1, all))}});
  return told;
}

/// An hour of all machines that are there at the end, with a server for each rank; nothing where
/// none has a price.
std::optional<double> price_of(const api::Cluster& cluster, uint32_t ranks) {
  bool any = cluster.server.price.has_value();
  double sum = ranks * cluster.server.price.value_or(0);
  for (const api::ClusterWorkers& group : cluster.workers) {
    any |= group.price.has_value();
    const bool there = group.join_step < cluster.steps &&
                       group.leave_step.value_or(cluster.steps) >= cluster.steps;
    if (there) sum += static_cast<double>(group.count) * group.price.value_or(0);
  }
  return any ? std::optional(sum) : std::nullopt;
}

/// What an epoch takes at such a step, and costs where that is known.
json epoch_of(const api::Cluster& cluster, const training::Profile& profile, double step) {
  constexpr double kHour = 3600;
  const double seconds = step * static_cast<double>(profile.samples) / profile.batch;
  json told{{"seconds", seconds}};
  if (const auto price = price_of(cluster, training::ranks_of(profile)))
    told["cost"] = *price * seconds / kHour;
  return told;
}

training::SimulationOptions options_of(const api::Cluster& cluster,
                                       const training::Profile& profile) {
  training::SimulationOptions options;
  options.steps = static_cast<uint64_t>(cluster.steps);
  options.seed = static_cast<uint64_t>(cluster.seed);
  options.jitter = cluster.jitter_percent / 100;
  options.planner = profile.options;
  // What the job fixes, nobody moves.
  if (profile.options.fixes_plan()) options.fixed = fixed_choice(profile.options);
  return options;
}

training::RateChange change_of(const api::ClusterChange& change) {
  return {static_cast<uint64_t>(change.step), change.speed, change.link};
}

training::ServerRates server_of(const api::ClusterServer& server,
                                const training::Profile& profile) {
  const bool gpu = is_of_gpu(profile.costs);
  const double cores = server.cores * server.speed;
  const double at_work = server.speed * training::cores_at_work(profile, server.cores);
  training::ServerRates rates{.cores = server.device.value_or(gpu ? 1 : at_work),
                              .decode = profile.decode / cores,
                              .shared = !gpu && !server.device,
                              .own_cores = cores,
                              .stem_part = at_work / cores,
                              .bytes_per_second = server.megabits * kBytesAMegabit};
  if (server.gigabytes) rates.memory = *server.gigabytes * kBytesAGigabyte;
  return rates;
}

/// Those of one rank, of that which has the fewest: workers are given out to ranks in turn.
std::vector<training::SimulatedWorker> of_one_rank(
    const std::vector<training::SimulatedWorker>& all, uint32_t ranks) {
  check_workers("workers", all.size(), ranks);
  std::vector<training::SimulatedWorker> its;
  for (size_t i = ranks - 1; i < all.size(); i += ranks) its.push_back(all[i]);
  return its;
}

/// The profile does not say how tensors travel.
SplitNotes split_of(const training::Profile& profile, const training::Choice& choice) {
  const training::PlannerOptions& options = profile.options;
  return {.stems_away = choice.away > 0,
          .stems_train = profile.costs.cuts[choice.cut].trains,
          .cut_is_open = !options.cut,
          .share_is_open = options.cut != 0u && !options.away,
          .staleness = profile.costs.staleness};
}

/// Nobody trains with less than cut Input takes on the server, and on each worker.
void check_memory(const api::Cluster& described, const training::Profile& profile,
                  const training::SimulatedCluster& cluster) {
  for (size_t i = 0; i < described.workers.size(); ++i) {
    const api::ClusterWorkers& group = described.workers[i];
    if (!group.gigabytes) continue;
    training::WorkerRates worker;
    give_room(worker, group.cores, profile);
    check_holds_pixels(fmt::format("workers[{}].gigabytes", i), *group.gigabytes * kBytesAGigabyte,
                       worker, profile.costs);
  }
  const std::string misfit = training::misfit(profile.costs, cluster.server, {}, {});
  if (!misfit.empty())
    throw InvalidInput(
        "server.gigabytes: no plan fits into the memory: cut Input " + misfit +
        training::what_would_fit(profile.costs, profile.micro_batch, cluster.server, {}));
}

}  // namespace

training::SimulatedCluster simulated_cluster(const api::Cluster& cluster,
                                             const training::Profile& profile) {
  training::SimulatedCluster simulated;
  simulated.server = server_of(cluster.server, profile);
  if (cluster.server.change) simulated.change = change_of(*cluster.server.change);
  for (const api::ClusterWorkers& group : cluster.workers) {
    training::SimulatedWorker worker;
    worker.name = group.name;
    worker.rates = {.stem_speed = group.speed * training::cores_at_work(profile, group.cores),
                    .decode = profile.decode / (group.cores * group.speed),
                    .bytes_per_second = group.megabits * kBytesAMegabit,
                    .latency = group.milliseconds / 1000,
                    .stems = group.stems,
                    .cores = group.cores * group.speed};
    worker.joins = static_cast<uint64_t>(group.join_step);
    if (group.leave_step) worker.leaves = static_cast<uint64_t>(*group.leave_step);
    if (group.gigabytes) worker.rates.memory = *group.gigabytes * kBytesAGigabyte;
    give_room(worker.rates, group.cores, profile);
    if (group.change) worker.change = change_of(*group.change);
    simulated.workers.insert(simulated.workers.end(), static_cast<size_t>(group.count), worker);
  }
  simulated.workers = of_one_rank(simulated.workers, training::ranks_of(profile));
  return simulated;
}

json simulate_job(const api::Cluster& cluster, const training::Profile& profile) {
  const auto simulated = simulated_cluster(cluster, profile);
  check_memory(cluster, profile, simulated);
  const auto begin = std::chrono::steady_clock::now();
  const auto result = training::simulate(profile.costs, simulated, options_of(cluster, profile));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const uint64_t from = first_counted(result);
  const uint64_t count = result.steps.size() - from;
  const double mean = result.mean_seconds(from, result.steps.size());
  const double seconds = mean * static_cast<double>(count);
  double device = 0;
  double local = 0;
  for (uint64_t i = from; i < result.steps.size(); ++i) {
    device += result.steps[i].device;
    local += result.steps[i].local;
  }
  json moves = json::array();
  for (const auto& move : result.moves)
    moves.push_back({{"step", move.step},
                     {"plan", describe(profile.costs, move.choice)},
                     {"reason", move.reason}});
  json told{{"steps", result.steps.size()},
            {"ranks", training::ranks_of(profile)},
            {"countedFrom", from},
            {"imagesPerSecond", profile.batch / mean},
            {"epoch", epoch_of(cluster, profile, mean)},
            {"secondsPerStep",
             {{"mean", mean},
              {"median", result.percentile(50, from)},
              {"p95", result.percentile(95, from)},
              {"p99", result.percentile(99, from)}}},
            {"devicePercent", 100 * device / seconds},
            {"localInputPercent", 100 * local / static_cast<double>(count)},
            {"stallPercentByCause", stalls_of(result, from, seconds)},
            {"plan", describe(profile.costs, result.steps.back().choice)},
            {"moves", moves},
            {"workers", groups_of(simulated, result)},
            {"secondLeases", result.second_leases},
            {"simulatedIn", took.count()}};
  double stall = 0;
  std::string cause;
  double most = -1;
  for (size_t i = 0; i < feed::kInputCauses; ++i) {
    const std::string name = feed::to_string(static_cast<feed::StallCause>(i));
    const double percent = told["stallPercentByCause"][name];
    stall += percent;
    if (percent > most) cause = name;
    most = std::max(most, percent);
  }
  told["stallPercent"] = stall;
  told["stallCause"] = stall > 0 ? cause : "None";
  told["advice"] =
      advice({.stall_percent = stall,
              .stall_cause = cause,
              .optimizer_percent =
                  told["stallPercentByCause"][feed::to_string(feed::StallCause::kOptimizer)],
              .workers = result.steps.back().workers,
              .split = split_of(profile, result.steps.back().choice)});
  return told;
}

void print_simulation(const json& told) {
  const json& seconds = told["secondsPerStep"];
  const json& epoch = told["epoch"];
  std::cout << fmt::format(
      "{} steps in virtual time, simulated in {:.1f} s; from step {} on:\n\n"
      "  {:.1f} images/s with {}; an epoch takes {}{}\n"
      "  a step takes {:.1f} ms, median {:.1f}, 95 % below {:.1f}, 99 % below {:.1f}\n"
      "  the device works {:.1f} % of the time; the server makes {:.0f} % of the pixels itself\n"
      "  it waits",
      told["steps"].get<int>(), told["simulatedIn"].get<double>(), told["countedFrom"].get<int>(),
      told["imagesPerSecond"].get<double>(), told["plan"].get<std::string>(),
      duration_text(epoch["seconds"].get<double>()),
      epoch.contains("cost") ? fmt::format(" and costs {:.4g}", epoch["cost"].get<double>()) : "",
      1e3 * seconds["mean"].get<double>(), 1e3 * seconds["median"].get<double>(),
      1e3 * seconds["p95"].get<double>(), 1e3 * seconds["p99"].get<double>(),
      told["devicePercent"].get<double>(), told["localInputPercent"].get<double>());
  for (const auto& [name, percent] : told["stallPercentByCause"].items())
    std::cout << fmt::format(" {} {:.1f} %", name, percent.get<double>());
  std::cout << "\n\nPlans:\n";
  for (const json& move : told["moves"])
    std::cout << fmt::format("  step {}: {}\n", move["step"].get<int>(),
                             move["reason"].get<std::string>());
  if (told["moves"].empty())
    std::cout << "  none but the first: " << told["plan"].get<std::string>() << "\n";
  if (!told["workers"].empty())
    std::cout << (told["ranks"] == 1 ? "\nWorkers:\n" : "\nWorkers of one rank:\n");
  for (const json& group : told["workers"])
    std::cout << fmt::format("  {:<16} {:>5} made {:>8} micro-batches, {:>5.1f} %\n",
                             group["name"].get<std::string>(), group["workers"].get<int>(),
                             group["microBatches"].get<int>(), group["percent"].get<double>());
  std::cout << "\n" << told["advice"].get<std::string>() << "\n";
}

}  // namespace outrigger::cli
