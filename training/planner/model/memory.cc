#include "training/planner/model/memory.h"

#include <algorithm>
#include <cmath>

#include "common/log.h"
#include "feed/plan.h"

namespace outrigger::training {
namespace {

std::string shortage(const std::string& whom, double needs, double has) {
  return fmt::format("needs {:.0f} MB {}, {:.0f} are free", needs / 1e6, whom, has / 1e6);
}

std::vector<double> memory_of_stem_workers(std::span<const WorkerRates> workers) {
  std::vector<double> has;
  for (const WorkerRates& worker : workers) {
    if (worker.stems) has.push_back(worker.memory);
  }
  return has;
}

}  // namespace

double total(std::span<const MemoryPart> parts) {
  double sum = 0;
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

std::vector<MemoryPart> server_memory(const JobCosts& job, const Choice& choice, size_t leases) {
  const CutCosts& cut = job.cuts[choice.cut];
  const double away = choice.away;
  const double here = job.micro_batches - away;
  const bool stems_here = cut.cut > 0 && here > 0 && !cut.device_stem;
  const double versions = static_cast<double>(job.staleness) + 1;
  const double steps = 1 + feed::steps_ahead(leases, job.micro_batches);
  std::vector<MemoryPart> parts{
      {"weights, momentum, gradients", job.parameters * job.copies},
      {"packed weights, work space", cut.head_fixed + (stems_here ? cut.stem_fixed : 0)},
      {"activations", cut.head_kept + (stems_here ? cut.stem_kept : 0)},
      {"micro-batches in hand", steps * (here * job.pixels + away * cut.crossing)}};
  if (cut.trains && away > 0)
    parts.push_back(
        {"gradients of stems",
         away * cut.crossing + (away + here_last(job, choice) + versions) * cut.weights});
  return parts;
}

std::vector<MemoryPart> worker_memory(const JobCosts& job, const Choice& choice, size_t workers,
                                      uint32_t leases) {
  std::vector<MemoryPart> parts{{"pixels of leases", leases * job.pixels}};
  if (choice.away == 0) return parts;
  const CutCosts& cut = job.cuts[choice.cut];
  const double stems = feed::StemMemory::held(choice.away, cut.trains, workers);
  const double versions = cut.trains ? static_cast<double>(job.staleness) + 1 : 1;
  parts.push_back({"stem's weights", versions * cut.weights});
  parts.push_back({"packed weights, work space", versions * cut.stem_fixed});
  parts.push_back({"activations", stems * (cut.stem_kept + job.pixels)});
  parts.push_back({"results to send", (stems + 1) * cut.crossing});
  return parts;
}

feed::StemMemory stem_memory(const JobCosts& job, const CutCosts& cut) {
  const double versions = cut.trains ? static_cast<double>(job.staleness) + 1 : 1;
  return {.fixed =
              kLeasesInHand * job.pixels + versions * (cut.weights + cut.stem_fixed) + cut.crossing,
          .each = cut.stem_kept + job.pixels + cut.crossing};
}

double memory_for_stems(const JobCosts& job, std::span<const WorkerRates> workers,
                        const Choice& choice) {
  const auto known = [](const WorkerRates& one) { return one.stems && std::isfinite(one.memory); };
  if (choice.away == 0 || std::ranges::none_of(workers, known)) return 0;
  const CutCosts& cut = job.cuts[choice.cut];
  return feed::memory_for_stems(stem_memory(job, cut), choice.away, cut.trains,
                                memory_of_stem_workers(workers));
}

std::string misfit(const JobCosts& job, const ServerRates& server,
                   std::span<const WorkerRates> workers, const Choice& choice) {
  const double needs = total(server_memory(job, choice, leases_of(workers)));
  if (needs > server.memory) return shortage("on the server", needs, server.memory);
  if (std::isfinite(memory_for_stems(job, workers, choice))) return "";
  const std::vector<double> has = memory_of_stem_workers(workers);
  if (has.empty()) return "";
  const double most = std::ranges::max(has);
  // Of the numbers of workers that might share the stems, the largest for which it is too little.
  size_t count = has.size();
  while (count > 1 && total(worker_memory(job, choice, count)) <= most) --count;
  return shortage("on a worker", total(worker_memory(job, choice, count)), most);
}

}  // namespace outrigger::training
