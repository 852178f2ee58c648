#include "cli/plan_table.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "cli/idle_cores_advice.h"
#include "cli/plan_bounds.h"
#include "cli/wire_advice.h"
#include "common/error.h"
#include "common/log.h"
#include "training/planner/batch_advice.h"
#include "training/planner/model/memory.h"
#include "training/planner/planner.h"
#include "training/planner/reason.h"
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

/// Those of the rank that has the fewest where there are `all`.
std::span<const training::WorkerRates> of_one_rank(const PlannedJob& job, size_t all) {
  return {job.workers.data(), all / training::ranks_of(job.profile)};
}

training::Situation situation_of(const PlannedJob& job, size_t workers) {
  return {job.profile.costs, job.profile.options, job.server, of_one_rank(job, workers)};
}

/// What an epoch takes at so many seconds a step, and costs with so many workers.
json epoch_of(const PlannedJob& job, double step_seconds, size_t workers) {
  constexpr double kHour = 3600;
  const double seconds =
      step_seconds * static_cast<double>(job.profile.samples) / job.profile.batch;
  json told{{"seconds", seconds}};
  if (job.prices)
    told["cost"] =
        seconds / kHour *
        (job.servers * job.prices->server + static_cast<double>(workers) * job.prices->worker);
  return told;
}

json row_of(const PlannedJob& job, const Candidate& one, double unsplit) {
  const training::JobCosts& costs = job.profile.costs;
  const training::CutCosts& cut = costs.cuts[one.choice.cut];
  const auto of_rank = of_one_rank(job, job.workers.size());
  const size_t workers = of_rank.size();
  const uint32_t leases = of_rank.empty() ? feed::kLeasesInHand : of_rank.front().leases;
  const training::Traffic bytes = traffic(costs, one.choice, of_rank);
  const double away = one.choice.away;
  const double others = costs.micro_batches - away;
  // What nobody brings in time the server makes as well.
  const double local = std::max<double>(one.choice.local, one.prediction.local_input * others);
  return {{"cut", cut.name},
          {"plan", describe(costs, one.choice)},
          {"stemsAway", one.choice.away},
          {"localInputs", one.choice.local},
          {"sharePercent", 100 * one.choice.away / costs.micro_batches},
          {"localInputPercent", one.choice.local == 0 ? 0 : 100 * one.choice.local / others},
          {"serverPercent", 100 - (100 - cut.server_percent) * away / costs.micro_batches},
          {"madeByServerPercent", others == 0 ? 0 : 100 * local / others},
          {"stemCoreMilliseconds", 1e3 * (cut.stem_forward + cut.stem_backward)},
          {"headCoreMilliseconds", 1e3 * cut.head},
          {"bytesToServer", bytes.to_server - (local - one.choice.local) * costs.pixels},
          {"bytesToWorkers", bytes.to_workers},
          {"secondsPerStep", one.prediction.seconds},
          {"imagesPerSecond", job.profile.batch / one.prediction.seconds},
          {"epoch", epoch_of(job, one.prediction.seconds, job.workers.size())},
          {"serverMemory", to_json(server_memory(costs, one.choice, leases_of(of_rank)))},
          {"workerMemory", to_json(worker_memory(costs, one.choice, workers, leases))},
          {"bound", to_string(one.prediction.bound)},
          {"timesUnsplit", unsplit / one.prediction.seconds}};
}

/// The plans with the shortest steps, whatever their cuts.
json best_of(const PlannedJob& job, const training::Trial& trial) {
  constexpr size_t kMost = 5;
  json rows = json::array();
  for (const Candidate& one : best_plans(situation_of(job, job.workers.size()), trial, kMost))
    rows.push_back({{"cut", job.profile.costs.cuts[one.choice.cut].name},
                    {"stemsAway", one.choice.away},
                    {"localInputs", one.choice.local},
                    {"secondsPerStep", one.prediction.seconds}});
  return rows;
}

/// Of plans that were tried: the one that the job fixes, where it can be, else what is found.
size_t chosen_row(const training::PlannerOptions& options, const training::TriedCandidates& tried) {
  if (!options.fixes_plan()) return tried.found;
  const auto its = [](const Candidate& row) { return row.choice; };
  const auto own = std::ranges::find(tried.rows, fixed_choice(options), its);
  return own == tried.rows.end() ? tried.found : static_cast<size_t>(own - tried.rows.begin());
}

/// What a run would do.
std::optional<Candidate> chosen_plan(const training::Situation& in, const training::Trial& trial) {
  if (!in.options.fixes_plan()) return search(in, {}, trial);
  const auto tried = tried_candidates(in, trial);
  if (tried.rows.empty()) return std::nullopt;
  return tried.rows[chosen_row(in.options, tried)];
}

/// The plan with no worker, and for each rank one, two, four, …: who pays wants to know where
/// more of them stop to pay.
json by_workers(const PlannedJob& job, const training::Trial& trial) {
  json rows = json::array();
  const size_t all = job.workers.size();
  const size_t ranks = training::ranks_of(job.profile);
  for (size_t count = 0;; count = std::min(all, std::max(ranks, 2 * count))) {
    const auto best = chosen_plan(situation_of(job, count), trial);
    if (best)
      rows.push_back({{"workers", count},
                      {"cut", job.profile.costs.cuts[best->choice.cut].name},
                      {"imagesPerSecond", job.profile.batch / best->prediction.seconds},
                      {"epoch", epoch_of(job, best->prediction.seconds, count)}});
    if (count == all) return rows;
  }
}

/// Sentences for people, the most important first.
std::vector<std::string> advice_of(const PlannedJob& job, const Candidate& best,
                                   const training::Trial& trial) {
  const training::Situation in = situation_of(job, job.workers.size());
  std::vector<std::string> advice = job.remarks;
  if (auto open = open_plan_advice(in, best.prediction.seconds, trial))
    advice.push_back(std::move(*open));
  if (auto bytes = traffic_advice(in, best.prediction.seconds, trial))
    advice.push_back(std::move(*bytes));
  if (auto wires = wire_advice(in, job.wires, job.narrowed_work, best.prediction.seconds, trial))
    advice.push_back(std::move(*wires));
  std::ranges::move(idle_cores_advice(job.profile, in.server, in.workers, best.choice),
                    std::back_inserter(advice));
  std::ranges::move(batch_advice(job.profile, in.server, in.workers, best),
                    std::back_inserter(advice));
  return advice;
}

}  // namespace

bool is_of_gpu(const training::JobCosts& costs) {
  return std::ranges::any_of(
      costs.cuts, [](const training::CutCosts& cut) { return cut.device_stem.has_value(); });
}

void check_workers(const char* field, size_t workers, uint32_t ranks) {
  if (workers == 0 || workers >= ranks) return;
  throw InvalidInput(
      fmt::format("{}: the job's {} ranks share {} workers; give each rank one at least, or none",
                  field, ranks, workers));
}

json plan_table(const PlannedJob& job) {
  const training::JobCosts& costs = job.profile.costs;
  const auto trial = training::by_simulation(costs, training::kLongestTrials);
  const training::Situation in = situation_of(job, job.workers.size());
  const training::TriedCandidates tried = tried_candidates(in, trial);
  const std::vector<Candidate>& all = tried.rows;
  if (all.empty())
    throw InvalidInput(
        "no plan fits into the memory: cut Input " +
        training::misfit(costs, job.server, in.workers, {}) +
        training::what_would_fit(costs, job.profile.micro_batch, job.server, in.workers));
  const size_t chosen = chosen_row(in.options, tried);
  const bool fixed = in.options.fixes_plan();
  auto alone = predict(costs, job.server, {}, {});
  alone.seconds = trial.seconds(situation_of(job, 0), {});
  json rows = json::array();
  for (const Candidate& one : all) rows.push_back(row_of(job, one, alone.seconds));
  json told{{"workers", job.workers.size()},
            {"ranks", training::ranks_of(job.profile)},
            {"device", is_of_gpu(costs) ? "GPU" : "cores"},
            {"fixed", fixed},
            {"decodeCoreMilliseconds", 1e3 * job.profile.decode},
            {"imagesPerSecondAlone", job.profile.batch / alone.seconds},
            {"boundAlone", to_string(alone.bound)},
            {"cuts", rows},
            {"best", best_of(job, trial)},
            {"leftOut", left_out(in, all)},
            {"advice", advice_of(job, all[chosen], trial)},
            {"serverMemoryFree", job.server.memory},
            {"choice", chosen},
            {"choiceIsFixed", fixed && all[chosen].choice == fixed_choice(in.options)},
            {"profile", json::parse(to_json(job.profile))}};
  if (job.prices) told["byWorkers"] = by_workers(job, trial);
  return told;
}

}  // namespace outrigger::cli
