#include "cli/report/advice.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "common/log.h"

namespace outrigger::cli {
namespace {

constexpr double kLittle = 5;  // percent

/// "Faster links, an earlier cut, or spec.training.staleness: 1 would help."
std::string would_help(const std::vector<std::string>& remedies) {
  std::string text;
  for (size_t i = 0; i < remedies.size(); ++i) {
    const bool last = i + 1 == remedies.size();
    if (i > 0) text += last ? (i == 1 ? " or " : ", or ") : ", ";
    text += remedies[i];
  }
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + " would help.";
}

bool staleness_would_help(const SplitNotes& split) {
  // Frozen stems run ahead anyway.
  return split.stems_train && split.staleness == 0 && !split.ranks_step_alone;
}

/// What is the planner's to choose is not named: it has chosen.
std::vector<std::string> for_stems(const SplitNotes& split) {
  std::vector<std::string> remedies{"more or faster workers"};
  if (!split.stems_away) return remedies;
  if (!split.share_is_open) remedies.emplace_back("a smaller spec.split.sharePercent");
  if (!split.cut_is_open) remedies.emplace_back("an earlier cut");
  if (staleness_would_help(split)) remedies.emplace_back("spec.training.staleness: 1");
  return remedies;
}

std::vector<std::string> for_weights(const SplitNotes& split) {
  std::vector<std::string> remedies;
  if (!split.cut_is_open) remedies.emplace_back("an earlier cut");
  remedies.emplace_back("faster links");
  if (staleness_would_help(split)) remedies.emplace_back("spec.training.staleness: 1");
  return remedies;
}

/// What travels over the cut in more than a byte a value, as spec.split.wire has it.
std::string wider_wires(const SplitNotes& split) {
  std::string fields;
  if (split.activations != "int8") fields = "activations: Int8";
  if (split.stems_train && split.gradients != "int8")
    fields += fields.empty() ? "gradients: Int8" : ", gradients: Int8";
  return fields;
}

std::vector<std::string> for_links(const SplitNotes& split) {
  std::vector<std::string> remedies{"faster links"};
  const std::string wires = split.stems_away ? wider_wires(split) : "";  // pixels are bytes
  const bool known = !split.activations.empty();
  if (!wires.empty())
    remedies.push_back("spec.split.wire: {" + wires + "}" +
                       (known ? "" : " where it is not that already"));
  if (split.stems_away && !split.cut_is_open)
    remedies.emplace_back("a cut whose activations are smaller");
  // A plan that is fixed keeps no input local.
  remedies.emplace_back(split.is_planned() ? "more cores for the server" : "spec.split.cut: Auto");
  return remedies;
}

std::string remedy(const Limits& limits) {
  const std::string more = limits.workers == 0 ? "A worker, on cores of its own," : "More workers";
  if (limits.stall_cause == "Read")
    return more + " or a faster disk would help; so would images packed into shards (WebDataset).";
  if (limits.stall_cause == "Stem") return would_help(for_stems(limits.split));
  if (limits.stall_cause == "Link")
    return would_help(for_links(limits.split)) + " What the server decodes itself crosses no link.";
  if (limits.stall_cause == "Weights") return would_help(for_weights(limits.split));
  return more + " or faster cores would help; smaller photos on the disk make decoding cheaper.";
}

std::string wanted(const Limits& limits) {
  if (!limits.desired_workers || *limits.desired_workers <= limits.workers) return "";
  return fmt::format(" By the planner the job can use {} workers; at the end it had {}.",
                     *limits.desired_workers, limits.workers);
}

std::string told_of_evaluating_workers(const Limits& limits) {
  if (limits.split.stops_early) return "";
  return fmt::format(
      "; so would {}, which can evaluate beside training{}",
      limits.workers == 0 ? "workers" : "more workers",
      limits.split.workers_evaluate ? "" : " (spec.training.evaluate.place: Workers)");
}

/// What holds training up between its steps; empty: little does.
std::string told_of_stops(const Limits& limits) {
  std::string text;
  if (limits.evaluation_percent >= kLittle)
    text = fmt::format(
        "Training stands still {:.0f} % of its time while the server evaluates. A larger "
        "spec.training.evaluate.everySteps would help{}. ",
        limits.evaluation_percent, told_of_evaluating_workers(limits));
  if (limits.checkpoint_percent >= kLittle)
    text += fmt::format(
        "Training stands still {:.0f} % of its time while checkpoints are written. A larger "
        "spec.checkpoint.everySteps or a faster disk for spec.checkpoint.path would help. ",
        limits.checkpoint_percent);
  return text;
}

std::string told_of_stall(const Limits& limits) {
  return fmt::format("device waits {:.0f} % of its time, most of it for: {}. {}{}",
                     limits.stall_percent, limits.stall_cause, remedy(limits), wanted(limits));
}

std::string told_of_ranks(const Limits& limits) {
  const auto text =
      fmt::format("wait for other ranks takes {:.0f} % of the time. ", limits.ranks_percent);
  if (limits.split.ranks_share_cores)
    return text +
           "They share one machine's cores, and there cost more than they bring: one rank with "
           "all of the cores (spec.server.replicas: 1) would help, or a machine for each.";
  std::vector<std::string> remedies{"workers for the rank that the others wait for",
                                    "a faster network between servers"};
  if (!limits.split.ranks_step_alone && !limits.split.sums_are_bfloat16)
    remedies.emplace_back("spec.training.allReducePrecision: BFloat16");
  remedies.emplace_back("a larger spec.training.batchSize");
  return text + would_help(remedies);
}

std::string told_of_optimizer(const Limits& limits) {
  return fmt::format(
      "end of each step (sums, optimizer, commit) takes {:.0f} % of the time{}. A larger "
      "spec.training.batchSize would help.",
      limits.optimizer_percent,
      limits.stall_percent < kLittle ? ", and the device waits for little else" : "");
}

/// What takes most of the time within steps, without the article.
std::string told_of_steps(const Limits& limits) {
  const auto part = [](double percent, double least) { return percent >= least ? percent : 0; };
  const double stall = part(limits.stall_percent, kLittle);
  const double ranks = part(limits.ranks_percent, 2 * kLittle);
  const double optimizer = part(limits.optimizer_percent, 2 * kLittle);
  const double most = std::max({stall, ranks, optimizer});
  if (most == 0)
    return fmt::format(
        "device is the limit: it waits {:.1f} % of its time. A faster device, or a cut that takes "
        "more off it, would help; more workers alone would not.",
        limits.stall_percent);
  if (stall == most) return told_of_stall(limits);
  return ranks == most ? told_of_ranks(limits) : told_of_optimizer(limits);
}

}  // namespace

std::string advice(const Limits& limits) {
  const std::string stops = told_of_stops(limits);
  const std::string failure = limits.failure.empty() ? "" : limits.failure + " ";
  return failure + stops + (stops.empty() ? "The " : "Within steps the ") + told_of_steps(limits);
}

}  // namespace outrigger::cli
