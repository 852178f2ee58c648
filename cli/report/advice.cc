#include "cli/report/advice.h"

#include "common/log.h"

namespace outrigger::cli {
namespace {

constexpr double kLittle = 5;  // percent

std::string remedy(const std::string& cause, uint64_t workers) {
  const std::string more = workers == 0 ? "A worker, on cores of its own," : "More workers";
  if (cause == "Read")
    return more + " or a faster disk would help; so would images packed into shards (WebDataset).";
  if (cause == "Stem")
    return "More or faster workers, a smaller spec.split.sharePercent, an earlier cut, or "
           "spec.training.staleness: 1 would help.";
  if (cause == "Link")
    return "Faster links, spec.split.wire with Int8, or a cut whose activations are smaller would "
           "help; what the server decodes itself crosses no link.";
  if (cause == "Weights")
    return "An earlier cut, faster links, or spec.training.staleness: 1 would help.";
  return more + " or faster cores would help; smaller photos on the disk make decoding cheaper.";
}

std::string wanted(const Limits& limits) {
  if (!limits.desired_workers || *limits.desired_workers <= limits.workers) return "";
  return fmt::format(" By the planner the job can use {} workers; at the end it had {}.",
                     *limits.desired_workers, limits.workers);
}

}  // namespace

std::string advice(const Limits& limits) {
  if (limits.stall_percent >= kLittle)
    return fmt::format("The device waits {:.0f} % of its time, most of it for: {}. {}{}",
                       limits.stall_percent, limits.stall_cause,
                       remedy(limits.stall_cause, limits.workers), wanted(limits));
  if (limits.optimizer_percent >= 2 * kLittle)
    return fmt::format(
        "The end of each step (sums, optimizer, commit) takes {:.0f} % of the time, and the device "
        "waits for little else. A larger spec.training.batchSize would help.",
        limits.optimizer_percent);
  return fmt::format(
      "The device is the limit: it waits {:.1f} % of its time. A faster device, or a cut that "
      "takes "
      "more off it, would help; more workers alone would not.",
      limits.stall_percent);
}

}  // namespace outrigger::cli
