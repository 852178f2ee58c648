#include "cli/idle_cores_advice.h"

#include <algorithm>
#include <optional>

#include "common/log.h"

namespace outrigger::cli {
namespace {

constexpr double kMostIdle = 0.25;  // part of the cores

bool are_at_work(const training::Profile& profile, uint32_t micro_batch, double cores) {
  return training::cores_at_work(profile.block_samples, micro_batch, cores) >=
         (1 - kMostIdle) * cores;
}

/// The least doubling of the micro-batch with which so many cores are at work, and steps have
/// several.
std::optional<uint32_t> size_for(const training::Profile& profile, double cores) {
  const uint32_t of_rank = profile.micro_batch * profile.costs.micro_batches;
  for (uint32_t size = 2 * profile.micro_batch; 2 * size <= of_rank; size *= 2) {
    if (of_rank % size == 0 && are_at_work(profile, size, cores)) return size;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> idle_cores_advice(const training::Profile& profile,
                                           const training::ServerRates& server,
                                           std::span<const training::WorkerRates> workers,
                                           const training::Choice& choice) {
  std::vector<std::string> advice;
  const auto tell = [&](const char* whose, const char* what, double cores, const char* instead) {
    if (cores == 0 || are_at_work(profile, profile.micro_batch, cores)) return;
    const auto size = size_for(profile, cores);
    advice.push_back(
        fmt::format("Of {} {:.3g} cores {} keep {:.3g} at work, with micro-batches of {}{}{}.",
                    whose, cores, what, cores_at_work(profile, cores), profile.micro_batch, instead,
                    size ? fmt::format("; microBatchSize: {} would keep {:.3g}", *size,
                                       training::cores_at_work(profile.block_samples, *size, cores))
                         : ""));
  };
  if (server.shared) tell("the server's", "passes", server.own_cores, "");
  if (choice.away > 0 && !workers.empty())
    tell("each worker's", "stems", workers.front().cores, ": more workers of fewer cores do more");
  return advice;
}

}  // namespace outrigger::cli
