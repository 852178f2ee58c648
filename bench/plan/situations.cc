#include "bench/plan/situations.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "bench/plan/drawn.h"
#include "bench/plan/exhaustive.h"
#include "bench/plan/figures.h"
#include "common/log.h"
#include "training/planner/model/step_model.h"
#include "training/simulator/cluster.h"
#include "training/simulator/trial.h"

namespace outrigger::training {
namespace {

// ---- changes

/// A net whose stems pay: four workers, 1 Gbit/s.
JobCosts changing_job() {
  JobCosts job;
  job.micro_batches = 8;
  job.pixels = 5e5;
  job.cuts.push_back({.head = 0.3, .server_percent = 100});
  job.cuts.push_back({.cut = 4,
                      .name = "layer1",
                      .trains = true,
                      .stem_forward = 0.03,
                      .stem_backward = 0.06,
                      .head = 0.21,
                      .activations = 2e6,
                      .gradients = 2e6,
                      .weights = 1e5,
                      .server_percent = 70});
  return job;
}

/// All of them decode alike.
SimulatedCluster machines(double decode, size_t workers, double stem_speed) {
  const WorkerRates rates{
      .stem_speed = stem_speed, .decode = decode, .bytes_per_second = 1.25e8, .latency = 0.0002};
  return {.server = {.cores = 2, .decode = decode, .shared = true},
          .workers = std::vector<SimulatedWorker>(workers, {.rates = rates})};
}

SimulatedCluster changing_cluster() { return machines(0.05, 4, 2); }

/// Three cuts behind "Input" whose stems take so many times as long as is believed.
JobCosts three_cut_job(double times) {
  JobCosts job;
  job.micro_batches = 8;
  job.pixels = 5e5;
  job.cuts.push_back({.head = 0.3, .server_percent = 100});
  for (int i = 1; i <= 3; ++i) {
    const double stem = 0.03 * (i + 1);
    job.cuts.push_back({.cut = i,
                        .name = fmt::format("layer{}", i),
                        .trains = true,
                        .stem_forward = times * stem / 3,
                        .stem_backward = times * stem * 2 / 3,
                        .head = 0.3 - stem,
                        .activations = 4e6 / i,
                        .gradients = 4e6 / i,
                        .weights = 1e5,
                        .server_percent = 100 * (1 - stem / 0.3)});
  }
  return job;
}

/// The server's device is the bottleneck; two slow workers could help it a little.
SimulatedCluster helping_cluster() { return machines(0.02, 2, 0.25); }

/// The best fixed plan's seconds on the cluster as it is in the end.
double best_after(const JobCosts& job, SimulatedCluster cluster) {
  std::erase_if(cluster.workers, [](const SimulatedWorker& w) { return w.leaves.has_value(); });
  for (SimulatedWorker& worker : cluster.workers) {
    worker.joins = 0;
    if (!worker.change) continue;
    worker.rates = changed(worker.rates, *worker.change);
    worker.change.reset();
  }
  if (cluster.change) cluster.server = changed(cluster.server, *cluster.change);
  cluster.change.reset();
  return best_of_all(job, cluster).seconds;
}

void follow(const std::string& what, const SimulatedCluster& cluster) {
  constexpr uint64_t kChange = 60;
  constexpr uint64_t kWithin = 20;
  const JobCosts job = changing_job();
  const auto result = simulate(job, cluster, {.steps = kChange + 60, .jitter = 0.02});
  const double after = result.mean_seconds(kChange + kWithin, result.steps.size());
  const double share = best_after(job, cluster) / after;
  judge("  " + what, percent(share), "least 95 %", share >= 0.95);
}

/// In 1,000 steps, once the planner has settled.
void judge_moves(const std::string& what, const SimulationResult& result, int most) {
  const auto late = std::ranges::count_if(result.moves, [](const auto& m) { return m.step > 50; });
  judge("  moves in 1,000 steps of steady load" + what, std::to_string(late),
        fmt::format("most {}", most), late <= most);
}

void run_steady() {
  constexpr uint64_t kSteps = 1050;
  judge_moves("", simulate(changing_job(), changing_cluster(), {.steps = kSteps, .jitter = 0.1}),
              1);
  const auto disappointed =
      simulate(three_cut_job(1.25), helping_cluster(),
               {.steps = kSteps, .jitter = 0.1, .believed = three_cut_job(1)});
  judge_moves(", stems 1.25x as long as believed", disappointed, 2);
  const auto split =
      std::ranges::count_if(disappointed.moves, [](const auto& m) { return m.choice.away > 0; });
  show("    of its moves in all, to a split",
       fmt::format("{} of {}", split, disappointed.moves.size()));
}

// ---- size

/// A device that eats 8,000 images of 100 kB a second, fed by workers whose speeds spread 4x.
SimulatedCluster many(size_t count, double decode) {
  SimulatedCluster cluster;
  cluster.server = {.cores = 1, .decode = 1, .shared = false, .bytes_per_second = 100e9 / 8};
  Draw draw(count);
  for (size_t i = 0; i < count; ++i)
    cluster.workers.push_back({.name = "w",
                               .rates = {.decode = decode * draw.magnitude(0.5, 2),
                                         .bytes_per_second = 1.25e9,
                                         .latency = 2e-4}});
  return cluster;
}

/// Seconds of a step if device, workers or links did nothing but work.
double ideal(const JobCosts& job, const SimulatedCluster& cluster) {
  const double device = job.micro_batches * job.cuts[0].head / cluster.server.cores;
  double decoded = 1 / cluster.server.decode;
  double link = cluster.server.bytes_per_second / job.pixels;
  for (const SimulatedWorker& worker : cluster.workers)
    decoded += std::min(1 / worker.rates.decode, worker.rates.bytes_per_second / job.pixels);
  return std::max({device, job.micro_batches / decoded, job.micro_batches / link});
}

/// A device that eats a micro-batch in so long.
constexpr double kBite = 0.004;

JobCosts eating_job(size_t micro_batches) {
  JobCosts job;
  job.micro_batches = static_cast<uint32_t>(micro_batches);
  job.pixels = 3.2e6;
  job.cuts.push_back({.head = kBite, .server_percent = 100});
  return job;
}

/// What workers can bring together, and what passes the server's card, of what the device eats.
struct Supply {
  double workers = 1;
  double card = 10;
};

void run_size(size_t workers, double least, const Supply& supply) {
  const JobCosts job = eating_job(workers);
  auto cluster = many(workers, kBite * static_cast<double>(workers) / supply.workers);
  cluster.server.bytes_per_second = supply.card * job.pixels / kBite;
  const auto result = simulate(job, cluster, {.steps = 40, .jitter = 0.05, .fixed = Choice{}});
  const double share = ideal(job, cluster) / result.mean_seconds(10, 40);
  judge(fmt::format("  {} workers that bring {:.1f}x what the device eats, a card for {:.1f}x",
                    workers, supply.workers, supply.card),
        percent(share), fmt::format("least {:.0f} %", 100 * least), share >= least);
}

void run_loss() {
  const JobCosts job = eating_job(64);
  auto cluster = many(64, kBite * 64 / 1.5);
  for (size_t i = 0; i < 7; ++i) cluster.workers[i * 9].leaves = 30;
  const auto result = simulate(job, cluster, {.steps = 60, .jitter = 0.05, .fixed = Choice{}});
  const double before = result.mean_seconds(10, 30);
  double lost = 0;
  double recovered = 0;
  double passed = 0;
  for (uint64_t step = 30; step < 60; ++step) {
    passed += result.steps[step].seconds;
    lost += std::max(0.0, result.steps[step].seconds - before);
    if (result.steps[step].seconds > 1.05 * before) recovered = passed;
  }
  judge("  64 workers lose 7: back at 95 % of the rate after", fmt::format("{:.2f} s", recovered),
        "most 2 s", recovered <= 2);
  show("    time that the loss cost", fmt::format("{:.2f} s", lost));
}

// ---- cost

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void run_cost(uint32_t micro_batches, size_t count) {
  JobCosts job = changing_job();
  job.micro_batches = micro_batches;
  const SimulatedCluster cluster = changing_cluster();
  const std::vector<WorkerRates> workers(count, cluster.workers[0].rates);
  const PlannerOptions options;
  const Trial trial = by_simulation(job);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const double begin = cpu_seconds();
    static_cast<void>(search({job, options, cluster.server, workers}, {}, trial));
    seconds.push_back(cpu_seconds() - begin);
  }
  std::ranges::sort(seconds);
  const double share = seconds[2] / kSecondsALook;
  judge(fmt::format("  {} micro-batches, {} workers: of a core, most", micro_batches, count),
        percent(share), "most 1 %", share <= 0.01);
}

}  // namespace

void run_changes() {
  constexpr uint64_t kChange = 60;
  std::printf("of the new best, 20 steps after a change\n");
  auto slow = changing_cluster();
  slow.workers[0].change = {kChange, 0.5, 1};
  follow("a worker at half its speed", slow);
  auto narrow = changing_cluster();
  for (SimulatedWorker& worker : narrow.workers) worker.change = {kChange, 1, 0.25};
  follow("links at a quarter", narrow);
  auto gone = changing_cluster();
  gone.workers[1].leaves = kChange;
  follow("a worker gone", gone);
  auto more = changing_cluster();
  more.workers.resize(6, more.workers[0]);
  more.workers[4].joins = more.workers[5].joins = kChange;
  follow("two more workers", more);
  auto busy = changing_cluster();
  busy.change = {kChange, 0.5, 1};
  follow("the server at half its speed", busy);
  run_steady();
}

void run_sizes(bool all) {
  std::printf("of min(device, workers, link), speeds spread 4x\n");
  for (const Supply& supply :
       {Supply{.workers = 0.7}, Supply{.workers = 1.3}, Supply{.workers = 1.5, .card = 0.7}}) {
    run_size(64, 0.95, supply);
    if (all) run_size(512, 0.90, supply);
  }
  run_loss();
}

/// 224x224 photos over a card of 1 Gbit/s for a device that eats 4,000 a second.
void run_narrow_card() {
  JobCosts job;
  job.micro_batches = 8;
  job.pixels = 32 * 224.0 * 224 * 3;
  job.cuts.push_back({.head = 32 / 4000.0, .server_percent = 100});
  SimulatedCluster cluster;
  cluster.server = {
      .cores = 1, .decode = 32 / 2400.0, .shared = false, .bytes_per_second = 1e9 / 8};
  cluster.workers.resize(
      8, {.name = "w", .rates = {.decode = 0.02, .bytes_per_second = 1e9 / 8, .latency = 2e-4}});
  const auto result = simulate(job, cluster, {.steps = 60});
  double local = 0;
  for (uint64_t i = 20; i < 60; ++i) local += result.steps[i].local / 40;
  std::vector<WorkerRates> rates;
  for (const SimulatedWorker& worker : cluster.workers) rates.push_back(worker.rates);
  const Prediction told = predict(job, cluster.server, rates, result.steps.back().choice);
  std::printf("a card of 1 Gbit/s, 224x224, a device that eats 4,000 images/s\n");
  judge("  the server makes of the pixels itself", percent(local), "least 50 %", local >= 0.5);
  const uint32_t planned = result.steps.back().choice.local;
  judge("    of them, kept local by the plan", fmt::format("{} of {}", planned, job.micro_batches),
        "least a half", 2 * planned >= job.micro_batches);
  const bool says =
      !result.moves.empty() &&
      result.moves.back().reason.find("inputs made by the server itself") != std::string::npos;
  judge("    the reason of the move says so", says ? "yes" : "no", "yes", says);
  judge("  and the model says so", percent(told.local_input), "within 10",
        std::abs(told.local_input - local) <= 0.1);
}

void run_costs() {
  std::printf("comparing plans\n");
  run_cost(4, 8);
  run_cost(8, 4);
  run_cost(16, 16);
  run_cost(64, 20);
}

}  // namespace outrigger::training
