#include "bench/plan/drawn.h"

#include <string>

namespace outrigger::training {

JobCosts draw_job(Draw& draw) {
  JobCosts job;
  job.micro_batches = draw.one_of<uint32_t>({8, 16});
  job.pixels = draw.magnitude(2e4, 5e6);
  job.staleness = draw.chance(0.2) ? 1 : 0;
  const double work = draw.magnitude(0.02, 2);  // core-seconds of a micro-batch
  const bool frozen = draw.chance(0.25);
  job.optimizer = work * draw.between(0.001, 0.02);
  const double first_bytes = job.pixels * draw.between(4, 40);
  const double parameters = draw.magnitude(1e4, 1e7);
  std::vector<double> done{0};  // of the work, before each cut
  for (int i = 1; i <= 4; ++i) done.push_back(done.back() + draw.between(0.03, 0.13));
  for (int32_t i = 0; i <= 4; ++i) {
    const double before = work * done.at(static_cast<size_t>(i));
    CutCosts cut{.cut = i, .server_percent = 100 * (1 - before / work)};
    // Forward passes are a third of the work. Frozen is what lies before the last cut.
    cut.head = work - before - (frozen ? (work * done.back() - before) * 2 / 3 : 0);
    job.cuts.push_back(cut);
    if (i == 0) continue;
    CutCosts& stem = job.cuts.back();
    stem.name = "layer" + std::to_string(i);
    stem.trains = !frozen;
    stem.stem_forward = before / 3;
    stem.stem_backward = frozen ? 0 : before * 2 / 3;
    stem.activations = first_bytes / std::pow(2, i);
    stem.gradients = frozen ? 0 : stem.activations;
    stem.weights = parameters * std::pow(before / work, 2);
  }
  return job;
}

SimulatedCluster draw_cluster(Draw& draw, const JobCosts& job) {
  SimulatedCluster cluster;
  const double decode = job.cuts[0].head * draw.magnitude(0.05, 3);  // core-seconds
  cluster.server.cores = draw.one_of<double>({1, 2, 8});
  cluster.server.own_cores = cluster.server.cores;
  cluster.server.decode = decode / cluster.server.cores;
  cluster.server.shared = draw.chance(0.6);
  if (!cluster.server.shared) cluster.server.cores *= draw.magnitude(1, 30);
  const int workers = draw.one_of<int>({1, 2, 3, 4, 6, 8});
  const double cores = draw.one_of<double>({1, 2, 4});
  const double link = draw.magnitude(10e6 / 8, 20e9 / 8);
  for (int i = 0; i < workers; ++i) {
    const double speed = cores * draw.between(0.5, 1.5);
    cluster.workers.push_back({.name = "w" + std::to_string(i),
                               .rates = {.stem_speed = speed,
                                         .decode = decode / speed,
                                         .bytes_per_second = link,
                                         .latency = draw.magnitude(5e-5, 5e-3)}});
  }
  return cluster;
}

std::vector<Choice> all_choices(const JobCosts& job) {
  std::vector<Choice> choices;
  for (size_t cut = 0; cut < job.cuts.size(); ++cut) {
    const uint32_t most = cut == 0 ? 0 : job.micro_batches;
    for (uint32_t away = cut == 0 ? 0 : 1; away <= most; ++away) {
      for (uint32_t local = 0; local <= job.micro_batches - away; ++local)
        choices.push_back({cut, away, local});
    }
  }
  return choices;
}

}  // namespace outrigger::training
