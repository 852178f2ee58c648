#include "cli/plan_table.h"

#include <algorithm>
#include <iostream>

#include "common/error.h"
#include "common/log.h"
#include "training/planner/batch_advice.h"
#include "training/planner/memory.h"
#include "training/planner/planner.h"
#include "training/simulator/trial.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;
using training::Candidate;

/// Bytes by what takes them, and their sum.
json to_json(const std::vector<training::MemoryPart>& parts) {
  json told{{"total", total(parts)}};
  for (const training::MemoryPart& part : parts) told[part.what] = part.bytes;
  return told;
}

/// Cuts that the job's bounds allow and memory does not, with what they need.
json left_out(const PlannedJob& job) {
  json list = json::array();
  const training::JobCosts& costs = job.profile.costs;
  for (size_t cut = 0; cut < costs.cuts.size(); ++cut) {
    std::string why;
    bool any = false;
    const uint32_t first = cut == 0 ? 0 : 1;
    for (uint32_t away = first; away <= (cut == 0 ? 0 : costs.micro_batches); ++away) {
      const std::string misfit = training::misfit(costs, job.server, job.workers, {cut, away});
      any |= misfit.empty();
      if (why.empty()) why = misfit;
    }
    if (!any) list.push_back({{"cut", costs.cuts[cut].name}, {"why", why}});
  }
  return list;
}

/// What an epoch takes at so many seconds a step, and costs with so many workers.
json epoch_of(const PlannedJob& job, double step_seconds, size_t workers) {
  constexpr double kHour = 3600;
  const double seconds =
      step_seconds * static_cast<double>(job.profile.samples) / job.profile.batch;
  json told{{"seconds", seconds}};
  if (job.prices)
    told["cost"] =
        seconds / kHour * (job.prices->server + static_cast<double>(workers) * job.prices->worker);
  return told;
}

json row_of(const PlannedJob& job, const Candidate& one, double unsplit) {
  const training::JobCosts& costs = job.profile.costs;
  const training::CutCosts& cut = costs.cuts[one.choice.cut];
  const size_t workers = job.workers.size();
  const double away = one.choice.away;
  const double others = costs.micro_batches - away;
  // What nobody brings in time the server makes as well.
  const double local = std::max<double>(one.choice.local, one.prediction.local_input * others);
  return {
      {"cut", cut.name},
      {"sharePercent", 100 * one.choice.away / costs.micro_batches},
      {"localInputPercent", one.choice.local == 0 ? 0 : 100 * one.choice.local / others},
      {"madeByServerPercent", others == 0 ? 0 : 100 * local / others},
      {"stemCoreMilliseconds", 1e3 * (cut.stem_forward + cut.stem_backward)},
      {"headCoreMilliseconds", 1e3 * cut.head},
      {"bytesToServer",
       away * (cut.activations + (cut.trains ? cut.weights : 0)) + (others - local) * costs.pixels},
      {"bytesToWorkers",
       away * cut.gradients +
           (one.choice.away > 0 && cut.trains ? static_cast<double>(workers) * cut.weights : 0)},
      {"secondsPerStep", one.prediction.seconds},
      {"imagesPerSecond", job.profile.batch / one.prediction.seconds},
      {"epoch", epoch_of(job, one.prediction.seconds, workers)},
      {"serverMemory", to_json(server_memory(costs, one.choice, workers))},
      {"workerMemory", to_json(worker_memory(costs, one.choice, workers))},
      {"bound", to_string(one.prediction.bound)},
      {"timesUnsplit", unsplit / one.prediction.seconds}};
}

/// The plans with the shortest steps, whatever their cuts.
json best_of(const PlannedJob& job, const training::Trial& trial) {
  constexpr size_t kMost = 5;
  json rows = json::array();
  const training::Situation situation{job.profile.costs, job.profile.options, job.server,
                                      job.workers};
  for (const Candidate& one : best_plans(situation, trial, kMost))
    rows.push_back({{"cut", job.profile.costs.cuts[one.choice.cut].name},
                    {"stemsAway", one.choice.away},
                    {"localInputs", one.choice.local},
                    {"secondsPerStep", one.prediction.seconds}});
  return rows;
}

/// The best plan with none, one, two, four, … of the workers: who pays wants to know where more of
/// them stop to pay.
json by_workers(const PlannedJob& job, const training::Trial& trial) {
  json rows = json::array();
  const size_t all = job.workers.size();
  for (size_t count = 0;; count = std::min(all, std::max<size_t>(1, 2 * count))) {
    const std::span some(job.workers.data(), count);
    const auto best = search({job.profile.costs, job.profile.options, job.server, some}, {}, trial);
    if (best)
      rows.push_back({{"workers", count},
                      {"cut", job.profile.costs.cuts[best->choice.cut].name},
                      {"imagesPerSecond", job.profile.batch / best->prediction.seconds},
                      {"epoch", epoch_of(job, best->prediction.seconds, count)}});
    if (count == all) return rows;
  }
}

void print_row(const json& row, bool chosen, bool prices) {
  std::cout << fmt::format(
      "{} {:<20} {:>4}% {:>4.0f}% {:>9.1f} {:>9.1f} {:>10.2f} {:>10.2f} {:>9.0f} {:>9.0f} {:>9.1f} "
      "{:>6.2f}x",
      chosen ? '>' : ' ', row["cut"].get<std::string>(), row["sharePercent"].get<int>(),
      row["madeByServerPercent"].get<double>(), row["stemCoreMilliseconds"].get<double>(),
      row["headCoreMilliseconds"].get<double>(), row["bytesToServer"].get<double>() / 1e6,
      row["bytesToWorkers"].get<double>() / 1e6, row["serverMemory"]["total"].get<double>() / 1e6,
      row["workerMemory"]["total"].get<double>() / 1e6, row["imagesPerSecond"].get<double>(),
      row["timesUnsplit"].get<double>());
  if (prices) std::cout << fmt::format(" {:>10.4g}", row["epoch"]["cost"].get<double>());
  std::cout << "  " << row["bound"].get<std::string>() << "\n";
}

void print_cuts(const json& told, bool prices) {
  std::cout << fmt::format(
      "The server alone: {:.1f} images/s, bound by {}; decoding takes {:.1f} core-ms a "
      "micro-batch.\nWith {} workers, the best share of every cut:\n\n"
      "  {:<20} {:>5} {:>5} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9} {:>7}{}  bound by\n",
      told["imagesPerSecondAlone"].get<double>(), told["boundAlone"].get<std::string>(),
      told["decodeCoreMilliseconds"].get<double>(), told["workers"].get<size_t>(), "cut", "share",
      "local", "stem ms", "head ms", "MB up", "MB down", "server MB", "worker MB", "images/s",
      "times", prices ? " cost/epoch" : "");
  size_t index = 0;
  for (const json& row : told["cuts"])
    print_row(row, index++ == told["choice"].get<size_t>(), prices);
  for (const json& one : told["leftOut"])
    std::cout << fmt::format("  {:<20} does not fit: {}\n", one["cut"].get<std::string>(),
                             one["why"].get<std::string>());
}

void print_workers(const json& rows) {
  std::cout << fmt::format(
      "\nThe best plan by the number of workers:\n\n  {:>7} {:<20} {:>9} {:>12} {:>10}\n",
      "workers", "cut", "images/s", "epoch", "cost");
  for (const json& row : rows)
    std::cout << fmt::format(
        "  {:>7} {:<20} {:>9.1f} {:>12} {:>10.4g}\n", row["workers"].get<size_t>(),
        row["cut"].get<std::string>(), row["imagesPerSecond"].get<double>(),
        duration_text(row["epoch"]["seconds"].get<double>()), row["epoch"]["cost"].get<double>());
}

void print_layers(const json& layers) {
  std::cout << fmt::format("\n  {:<28} {:>11} {:>12} {:>12} {:>12}\n", "layer", "forward ms",
                           "backward ms", "kept MB", "weights MB");
  json sum{{"name", "all"}, {"forward", 0.0}, {"backward", 0.0}, {"kept", 0.0}, {"weights", 0.0}};
  const auto print = [](const json& layer) {
    std::cout << fmt::format(
        "  {:<28} {:>11.2f} {:>12.2f} {:>12.3f} {:>12.3f}\n", layer["name"].get<std::string>(),
        1e3 * layer["forward"].get<double>(), 1e3 * layer["backward"].get<double>(),
        layer["kept"].get<double>() / 1e6, layer["weights"].get<double>() / 1e6);
  };
  for (const json& layer : layers) {
    print(layer);
    for (const char* field : {"forward", "backward", "kept", "weights"})
      sum[field] = sum[field].get<double>() + layer[field].get<double>();
  }
  print(sum);
  std::cout
      << "\nLayers that run as one (convolution, batch norm, activation) count for their parts, "
         "mostly as the first.\nkept: of one micro-batch from forward to backward, where "
         "nothing is recomputed.\n";
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

json plan_table(const PlannedJob& job) {
  const training::JobCosts& costs = job.profile.costs;
  const auto trial = training::by_simulation(costs, training::kLongestTrials);
  const auto all = tried_candidates({costs, job.profile.options, job.server, job.workers}, trial);
  if (all.empty())
    throw InvalidInput(
        "no plan fits into the memory: cut Input " +
        training::misfit(costs, job.server, job.workers, {}) +
        training::what_would_fit(costs, job.profile.micro_batch, job.server, job.workers));
  auto alone = predict(costs, job.server, {}, {});
  alone.seconds = trial.seconds({costs, job.profile.options, job.server, {}}, {});
  json rows = json::array();
  size_t best = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    rows.push_back(row_of(job, all[i], alone.seconds));
    if (all[i].prediction.seconds < all[best].prediction.seconds) best = i;
  }
  json told{{"workers", job.workers.size()},
            {"decodeCoreMilliseconds", 1e3 * job.profile.decode},
            {"imagesPerSecondAlone", job.profile.batch / alone.seconds},
            {"boundAlone", to_string(alone.bound)},
            {"cuts", rows},
            {"best", best_of(job, trial)},
            {"leftOut", left_out(job)},
            {"advice", batch_advice(job.profile, job.server, job.workers, all[best])},
            {"serverMemoryFree", job.server.memory},
            {"choice", best},
            {"profile", json::parse(to_json(job.profile))}};
  if (job.prices) told["byWorkers"] = by_workers(job, trial);
  return told;
}

void print_plan_table(const json& told, bool layers) {
  const bool prices = told.contains("byWorkers");
  print_cuts(told, prices);
  if (prices) print_workers(told["byWorkers"]);
  const json& best = told["cuts"][told["choice"].get<size_t>()];
  if (best["timesUnsplit"].get<double>() < 1.02) {
    std::cout << "\nWorkers would not pay here: with and without them the limit is "
              << best["bound"].get<std::string>() << ".\n";
  }
  for (const json& one : told["advice"]) std::cout << "\n" << one.get<std::string>() << "\n";
  std::cout << fmt::format(
      "\nmilliseconds are of one core for a micro-batch, bytes are of a step; local: of the pixels "
      "that a step needs, made by the server itself. An epoch takes {} by the best plan.\n`run` "
      "goes on measuring and moves the cut.\n",
      duration_text(best["epoch"]["seconds"].get<double>()));
  if (layers) print_layers(told["profile"]["layers"]);
}

}  // namespace outrigger::cli
