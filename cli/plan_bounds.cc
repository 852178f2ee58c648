#include "cli/plan_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/error.h"
#include "common/log.h"
#include "training/planner/model/memory.h"
#include "training/planner/planner.h"
#include "training/planner/reason.h"

namespace outrigger::cli {
namespace {

using training::Choice;
using training::Situation;

/// What a plan must gain to be worth a word.
constexpr double kGain = 1.05;

double server_percent(const Situation& in, const Choice& choice) {
  const double stems = 100 - in.job.cuts[choice.cut].server_percent;
  return 100 - stems * choice.away / in.job.micro_batches;
}

/// At the least, as the step model has it; infinite where nobody runs the stems.
double bytes_a_second(const Situation& in, Choice choice) {
  double least = std::numeric_limits<double>::infinity();
  for (const uint32_t local : {0u, in.job.micro_batches - choice.away}) {
    choice.local = local;
    const double seconds = predict(in, choice).seconds;
    if (!std::isfinite(seconds)) continue;
    least = std::min(least, traffic(in.job, choice, in.workers).fuller() / seconds);
  }
  return least;
}

std::string too_much_traffic(const Situation& in, double bytes) {
  if (!std::isfinite(in.options.most_bytes_per_second) || !std::isfinite(bytes)) return "";
  return fmt::format(
      "moves more bytes a second than maxBytesPerSecond, {:.0f}, with every share: about {:.0f} at "
      "the least",
      in.options.most_bytes_per_second, bytes);
}

/// Why a cut has no row; empty: for another reason than bounds and memory.
std::string why_not(const Situation& in, size_t cut) {
  const uint32_t all = cut == 0 ? 0 : in.job.micro_batches;
  const uint32_t least = std::min(all, in.options.away.value_or(1));
  const uint32_t most = std::min(all, in.options.away.value_or(all));
  if (cut > 0 && most == 0) return "no stem of a step is away with the job's sharePercent";
  const double percent = server_percent(in, {cut, least});
  if (percent < in.options.least_server_percent)
    return fmt::format(
        "leaves {:.0f} % on the server with {} of {} stems away, minServerPercent is {}",
        std::floor(percent), least, all, in.options.least_server_percent);
  std::string shortage;
  bool fits = false;
  double bytes = std::numeric_limits<double>::infinity();
  for (uint32_t away = least; away <= most; ++away) {
    const Choice choice{cut, away};
    if (server_percent(in, choice) < in.options.least_server_percent) break;
    const std::string misfit = training::misfit(in.job, in.server, in.workers, choice);
    fits |= misfit.empty();
    if (misfit.empty()) bytes = std::min(bytes, bytes_a_second(in, choice));
    if (shortage.empty()) shortage = misfit;
  }
  return fits ? too_much_traffic(in, bytes) : shortage;
}

/// Without those that only a job which names one has: gpu_server::deepest_cut().
training::JobCosts without_deep_cuts(training::JobCosts job, double least_server_percent) {
  constexpr double kHalf = 50;
  constexpr double kRounding = 1e-9;
  const double least = least_server_percent > 0 ? std::min(least_server_percent, kHalf) : kHalf;
  while (job.cuts.size() > 1 && job.cuts.back().server_percent < least - kRounding)
    job.cuts.pop_back();
  return job;
}

}  // namespace

nlohmann::json left_out(const Situation& in, std::span<const training::Candidate> rows) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t cut = 0; cut < in.job.cuts.size(); ++cut) {
    const bool other = cut > 0 && in.options.cut && *in.options.cut != cut;
    const bool has_row = std::ranges::any_of(
        rows, [cut](const training::Candidate& row) { return row.choice.cut == cut; });
    if (other || has_row) continue;
    const std::string why = why_not(in, cut);
    if (!why.empty()) list.push_back({{"cut", in.job.cuts[cut].name}, {"why", why}});
  }
  return list;
}

Choice fixed_choice(const training::PlannerOptions& options) {
  const Choice named{options.cut.value_or(0), options.away.value_or(0)};
  return named.cut == 0 || named.away == 0 ? Choice{} : named;
}

std::optional<std::string> open_plan_advice(const Situation& in, double seconds,
                                            const training::Trial& trial) {
  if (!in.options.cut && !in.options.away) return std::nullopt;
  training::PlannerOptions open = in.options;
  open.cut.reset();
  open.away.reset();
  const training::JobCosts job = without_deep_cuts(in.job, open.least_server_percent);
  const auto found = search({job, open, in.server, in.workers}, {}, trial);
  if (!found || seconds < kGain * found->prediction.seconds) return std::nullopt;
  return fmt::format(
      "With cut: Auto and no sharePercent the best plan would be {}: {:.2f}x the images a second.",
      describe(job, found->choice), seconds / found->prediction.seconds);
}

std::optional<std::string> traffic_advice(const Situation& in, double seconds,
                                          const training::Trial& trial) {
  training::PlannerOptions open = in.options;
  open.most_bytes_per_second = std::numeric_limits<double>::infinity();
  if (open.most_bytes_per_second == in.options.most_bytes_per_second) return std::nullopt;
  const auto found = search({in.job, open, in.server, in.workers}, {}, trial);
  if (!found || seconds < kGain * found->prediction.seconds) return std::nullopt;
  const double bytes = traffic(in.job, found->choice, in.workers).fuller();
  return fmt::format(
      "maxBytesPerSecond holds the job back: without it the best plan would be {}, with {:.2f}x "
      "the "
      "images a second; it counts for about {:.0f} bytes a second.",
      describe(in.job, found->choice), seconds / found->prediction.seconds,
      bytes / found->prediction.seconds);
}

void give_room(training::WorkerRates& worker, double cores, const training::Profile& profile) {
  worker.leases = feed::leases_in_hand(cores, profile.micro_batch);
  worker.memory = feed::memory_beside(worker.memory, worker.leases, profile.costs.pixels);
}

void check_holds_pixels(const std::string& field, double memory,
                        const training::WorkerRates& worker, const training::JobCosts& job) {
  const double needs = total(training::worker_memory(job, {}, 1, worker.leases));
  if (needs <= memory) return;
  constexpr double kGigabyte = 1e9;
  throw InvalidInput(fmt::format(
      "{}: {} is too little for the pixels that a worker makes at a time; at least {:.6f}", field,
      memory / kGigabyte, std::ceil(needs / 1e3) * 1e3 / kGigabyte));
}

}  // namespace outrigger::cli
