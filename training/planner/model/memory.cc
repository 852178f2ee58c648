#include "training/planner/model/memory.h"

#include <algorithm>

#include "common/log.h"
#include "feed/plan.h"

namespace outrigger::training {
namespace {

std::string shortage(const std::string& whom, double needs, double has) {
  return fmt::format("needs {:.0f} MB {}, {:.0f} are free", needs / 1e6, whom, has / 1e6);
}

}  // namespace

double total(std::span<const MemoryPart> parts) {
  double sum = 0;
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

std::vector<MemoryPart> server_memory(const JobCosts& job, const Choice& choice, size_t workers) {
  const CutCosts& cut = job.cuts[choice.cut];
  const double away = choice.away;
  const double here = job.micro_batches - away;
  const bool stems_here = cut.cut > 0 && here > 0 && !cut.device_stem;
  const double versions = static_cast<double>(job.staleness) + 1;
  const double steps = 1 + feed::steps_ahead(workers, job.micro_batches);
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

std::vector<MemoryPart> worker_memory(const JobCosts& job, const Choice& choice, size_t workers) {
  std::vector<MemoryPart> parts{{"pixels of leases", kLeasesInHand * job.pixels}};
  if (choice.away == 0) return parts;
  const CutCosts& cut = job.cuts[choice.cut];
  const double away = choice.away;
  // A fast one takes more than its part.
  const double stems =
      cut.trains ? std::min(away, away / static_cast<double>(std::max<size_t>(1, workers)) + 1) : 1;
  const double versions = cut.trains ? static_cast<double>(job.staleness) + 1 : 1;
  parts.push_back({"stem's weights", versions * cut.weights});
  parts.push_back({"packed weights, work space", versions * cut.stem_fixed});
  parts.push_back({"activations", stems * (cut.stem_kept + job.pixels)});
  parts.push_back({"results to send", (stems + 1) * cut.crossing});
  return parts;
}

std::string misfit(const JobCosts& job, const ServerRates& server,
                   std::span<const WorkerRates> workers, const Choice& choice) {
  const double needs = total(server_memory(job, choice, workers.size()));
  if (needs > server.memory) return shortage("on the server", needs, server.memory);
  if (choice.away == 0) return "";
  const auto stems = static_cast<size_t>(
      std::ranges::count_if(workers, [](const WorkerRates& one) { return one.stems; }));
  const double of_worker = total(worker_memory(job, choice, stems));
  for (const WorkerRates& worker : workers) {
    if (worker.stems && of_worker > worker.memory)
      return shortage("on a worker", of_worker, worker.memory);
  }
  return "";
}

}  // namespace outrigger::training
