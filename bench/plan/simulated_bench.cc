// How good the plans are that the planner finds, in virtual time: `simulated_plans [--scenarios
// N]`. Drawn jobs and clusters are run under the planner and, plan by plan, under every legal plan
// held fixed; prints figures beside their targets. Exit status 3 where one is missed, as
// bench/figures.py has it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/random.h"
#include "training/planner/step_model.h"
#include "training/simulator/cluster.h"

namespace outrigger::training {
namespace {

constexpr int kMissed = 3;
bool missed = false;

void judge(const std::string& what, const std::string& figure, const std::string& target,
           bool met) {
  missed |= !met;
  std::printf("%-74s %14s  %-15s %s\n", what.c_str(), figure.c_str(), target.c_str(),
              met ? "met" : "MISSED");
  std::fflush(stdout);
}

void show(const std::string& what, const std::string& figure) {
  std::printf("%-74s %14s\n", what.c_str(), figure.c_str());
  std::fflush(stdout);
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

// ---- drawn scenarios

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, RandomUse::kSyntheticData, 3) {}
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_.uniform());
  }
  /// Evenly spread in its logarithm.
  double magnitude(double low, double high) {
    return std::exp(between(std::log(low), std::log(high)));
  }
  bool chance(double probability) { return between(0, 1) < probability; }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(static_cast<uint32_t>(values.size()))];
  }

 private:
  RandomStream random_;
};

/// A network whose first layers hold `reduction` pixels' worth of bytes at each cut, as real ones
/// do: many bytes at first, fewer behind every stride.
JobCosts draw_job(Draw& draw) {
  JobCosts job;
  job.micro_batches = draw.one_of<uint32_t>({4, 8});
  job.pixels = draw.magnitude(2e4, 5e6);
  job.staleness = draw.chance(0.2) ? 1 : 0;
  const double work = draw.magnitude(0.02, 2);  // core-seconds of a micro-batch
  const bool frozen = draw.chance(0.25);
  job.optimizer = work * draw.between(0.001, 0.02);
  const double first_bytes = job.pixels * draw.between(4, 40);
  const double parameters = draw.magnitude(1e4, 1e7);
  double done = 0;
  job.cuts.push_back({.head = work, .server_percent = 100});
  for (int32_t i = 1; i <= 4; ++i) {
    done += draw.between(0.03, 0.13);
    CutCosts cut{.cut = i, .name = "layer" + std::to_string(i), .trains = !frozen};
    cut.stem_forward = work * done / 3;
    cut.stem_backward = frozen ? 0 : work * done * 2 / 3;
    cut.head = work * (1 - done) - (frozen ? work * done * 2 / 3 : 0);
    cut.activations = first_bytes / std::pow(2, i);
    cut.gradients = frozen ? 0 : cut.activations;
    cut.weights = parameters * done * done;
    cut.server_percent = 100 * (1 - done);
    job.cuts.push_back(cut);
  }
  if (frozen) job.cuts[0].head = job.cuts[1].head + job.cuts[1].stem_forward;
  return job;
}

SimulatedCluster draw_cluster(Draw& draw, const JobCosts& job) {
  SimulatedCluster cluster;
  const double decode = job.cuts[0].head * draw.magnitude(0.05, 3);  // core-seconds
  cluster.server.cores = draw.one_of<double>({1, 2, 8});
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
  std::vector<Choice> choices{{0, 0}};
  for (size_t cut = 1; cut < job.cuts.size(); ++cut) {
    for (uint32_t away = 1; away <= job.micro_batches; ++away) choices.push_back({cut, away});
  }
  return choices;
}

double seconds_fixed(const JobCosts& job, const SimulatedCluster& cluster, const Choice& choice) {
  constexpr uint64_t kSteps = 16;
  const auto result = simulate(job, cluster, {.steps = kSteps, .jitter = 0.02, .fixed = choice});
  return result.mean_seconds(kSteps / 4, kSteps);
}

struct Score {
  double best = 0;       // seconds, of all plans held fixed
  double unsplit = 0;    // at cut Input
  double automatic = 0;  // where the planner has settled
  uint64_t settled = 0;  // the last step within 30 at which it moved; later ones count too
  Choice choice;
  Choice best_choice;
};

Score score(const JobCosts& job, const SimulatedCluster& cluster) {
  Score score;
  score.best = 1e300;
  for (const Choice& choice : all_choices(job)) {
    const double seconds = seconds_fixed(job, cluster, choice);
    if (choice.away == 0) score.unsplit = seconds;
    if (seconds >= score.best) continue;
    score.best = seconds;
    score.best_choice = choice;
  }
  const auto result = simulate(job, cluster, {.steps = 60, .jitter = 0.02});
  if (!result.moves.empty()) score.settled = result.moves.back().step;
  score.choice = result.steps.back().choice;
  score.automatic = seconds_fixed(job, cluster, score.choice);
  return score;
}

void run_scenarios(int count) {
  int within5 = 0;
  int within10 = 0;
  int settled = 0;
  int cuts_pay = 0;
  double worst_auto = 1e300;
  double worst = 0;
  double regret = 0;
  double regret_unsplit = 0;
  for (int i = 0; i < count; ++i) {
    Draw draw(1000 + static_cast<uint64_t>(i));
    const JobCosts job = draw_job(draw);
    const SimulatedCluster cluster = draw_cluster(draw, job);
    const Score one = score(job, cluster);
    const double loss = one.automatic / one.best - 1;
    within5 += loss <= 0.05 ? 1 : 0;
    within10 += loss <= 0.10 ? 1 : 0;
    settled += one.settled <= 30 ? 1 : 0;
    cuts_pay += one.best_choice.cut > 0 && one.best_choice.away < job.micro_batches ? 1 : 0;
    worst = std::max(worst, loss);
    regret += loss / count;
    regret_unsplit += (one.unsplit / one.best - 1) / count;
    worst_auto = std::min(worst_auto, one.unsplit / one.automatic);
    if (loss > 0.05 && std::getenv("OUTRIGGER_PLAN_VERBOSE") != nullptr)
      std::printf("  scenario %d: %zu/%u at %.4f s, best %zu/%u at %.4f s\n", i, one.choice.cut,
                  one.choice.away, one.automatic, one.best_choice.cut, one.best_choice.away,
                  one.best);
  }
  const double n = count;
  std::printf("%d drawn jobs and clusters, every plan held fixed beside the planner's\n", count);
  judge("  planned within 5 % of the exhaustive optimum", percent(within5 / n), "least 95 %",
        within5 >= 0.95 * n);
  judge("  planned within 10 %", percent(within10 / n), "least 100 %", within10 == count);
  show("    worst loss", percent(worst));
  judge("  settled within 30 steps", percent(settled / n), "least 95 %", settled >= 0.95 * n);
  judge("  best plan has a cut above 0 and a share between 0 and 1", percent(cuts_pay / n),
        "least 30 %", cuts_pay >= 0.3 * n);
  judge("  planned against cut Input fixed, worst", fmt::format("{:.3f}x", worst_auto),
        "least 0.99x", worst_auto >= 0.99);
  show("    mean regret of the planner", percent(regret));
  show("    mean regret of always choosing cut Input", percent(regret_unsplit));
}

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

SimulatedCluster changing_cluster() {
  SimulatedCluster cluster;
  cluster.server = {.cores = 2, .decode = 0.05, .shared = true};
  cluster.workers.resize(4);
  for (SimulatedWorker& worker : cluster.workers)
    worker.rates = {.stem_speed = 2, .decode = 0.05, .bytes_per_second = 1.25e8, .latency = 0.0002};
  return cluster;
}

/// The best fixed plan's seconds on the cluster as it is in the end.
double best_after(const JobCosts& job, SimulatedCluster cluster) {
  std::erase_if(cluster.workers, [](const SimulatedWorker& w) { return w.leaves.has_value(); });
  for (SimulatedWorker& worker : cluster.workers) {
    worker.joins = 0;
    if (!worker.change) continue;
    worker.rates.stem_speed *= worker.change->speed;
    worker.rates.decode /= worker.change->speed;
    worker.rates.bytes_per_second *= worker.change->link;
    worker.change.reset();
  }
  double best = 1e300;
  for (const Choice& choice : all_choices(job)) {
    if (choice.away > 0 && cluster.workers.empty()) continue;
    best = std::min(best, seconds_fixed(job, cluster, choice));
  }
  return best;
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
  const auto steady = simulate(changing_job(), changing_cluster(), {.steps = 1050, .jitter = 0.1});
  const auto late = std::ranges::count_if(steady.moves, [](const auto& m) { return m.step > 50; });
  judge("  moves in 1,000 steps of steady load", std::to_string(late), "most 1", late <= 1);
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

void run_size(size_t workers, double least, double supply) {
  JobCosts job;
  job.micro_batches = static_cast<uint32_t>(workers);
  job.pixels = 3.2e6;
  job.cuts.push_back({.head = 0.004, .server_percent = 100});
  // Workers together bring `supply` times what the device eats.
  const auto cluster = many(workers, 0.004 * static_cast<double>(workers) / supply);
  const auto result = simulate(job, cluster, {.steps = 40, .jitter = 0.05, .fixed = Choice{}});
  const double share = ideal(job, cluster) / result.mean_seconds(10, 40);
  judge(fmt::format("  {} workers that bring {:.1f}x what the device eats", workers, supply),
        percent(share), fmt::format("least {:.0f} %", 100 * least), share >= least);
}

void run_loss() {
  JobCosts job;
  job.micro_batches = 64;
  job.pixels = 3.2e6;
  job.cuts.push_back({.head = 0.004, .server_percent = 100});
  auto cluster = many(64, 0.004 * 64 / 1.5);
  for (size_t i = 0; i < 6; ++i) cluster.workers[i * 10].leaves = 30;
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
  judge("  64 workers lose 6: back at 95 % of the rate after", fmt::format("{:.2f} s", recovered),
        "most 2 s", recovered <= 2);
  show("    time that the loss cost", fmt::format("{:.2f} s", lost));
}

void run_sizes(bool all) {
  std::printf("of min(device, workers, link), speeds spread 4x\n");
  for (const double supply : {0.7, 1.3}) {
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
  const auto result = simulate(job, cluster, {.steps = 60, .fixed = Choice{}});
  double local = 0;
  for (uint64_t i = 20; i < 60; ++i) local += result.steps[i].local / 40;
  std::vector<WorkerRates> rates;
  for (const SimulatedWorker& worker : cluster.workers) rates.push_back(worker.rates);
  const Prediction told = predict(job, cluster.server, rates, {});
  std::printf("a card of 1 Gbit/s, 224x224, a device that eats 4,000 images/s\n");
  judge("  the server makes of the pixels itself", percent(local), "least 50 %", local >= 0.5);
  judge("  and the model says so", percent(told.local_input), "within 10",
        std::abs(told.local_input - local) <= 0.1);
}

}  // namespace
}  // namespace outrigger::training

int main(int count, char** arguments) {
  using namespace outrigger::training;
  int scenarios = 1000;
  if (count == 3 && std::string(arguments[1]) == "--scenarios") scenarios = std::stoi(arguments[2]);
  run_scenarios(scenarios);
  run_changes();
  run_narrow_card();
  run_sizes(scenarios >= 100);
  return missed ? kMissed : 0;
}
