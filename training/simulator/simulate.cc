#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "training/planner/model/memory.h"
#include "training/planner/reason.h"
#include "training/simulator/cluster.h"
#include "training/simulator/trial.h"
#include "training/simulator/world.h"

namespace outrigger::training {
namespace {

/// How much of a worker's change the planner hears of with each step: the averages of a server
/// (gpu-server/planning/worker_book.cc) follow about so fast.
constexpr double kNewest = 0.25;

double seconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Samples without contents: the order and the leases want some.
data::Dataset some_samples() {
  data::Dataset dataset;
  dataset.set_classes({"one"});
  dataset.begin_container("", false);
  for (int i = 0; i < 256; ++i) dataset.add_file("sample", 0);
  dataset.finish();
  return dataset;
}

feed::Plan plan_of(const JobCosts& job, const Choice& choice, uint64_t number) {
  const CutCosts& cut = job.cuts.at(choice.cut);
  return {.number = number,
          .cut = cut.cut,
          .cut_name = cut.name,
          .stems_away = choice.away,
          .here_last = here_last(job, choice),
          .local_inputs = choice.local,
          .stem_trains = cut.trains && cut.cut > 0,
          .stem_memory = stem_memory(job, cut)};
}

/// As gpu_server::make_plan() begins a run: where bytes are bounded nothing moves until more is
/// known.
Choice first_choice(const JobCosts& job, const SimulationOptions& options) {
  if (options.fixed) return *options.fixed;
  return {.local = std::isfinite(options.planner.most_bytes_per_second) ? job.micro_batches : 0};
}

/// The trainer (training/trainer/trainer.cc) without its arithmetic, and the planner behind it.
class Simulator {
 public:
  Simulator(const JobCosts& job, const SimulatedCluster& cluster, const SimulationOptions& options)
      : job_(job),
        options_(options),
        dataset_(some_samples()),
        present_(first_choice(job, options)),
        world_(job, cluster, options, plan_of(job, present_, 1), dataset_),
        planner_(options.believed.value_or(job), options.planner, by_simulation),
        known_server_(cluster.server) {
    world_.coordinator().publish_stem(feed::kFrozenStem, nothing_, nothing_, world_.now());
  }

  SimulationResult run() {
    for (uint64_t step = 0; step < options_.steps; ++step) {
      world_.begin_step(step);
      run_step(step);
      if (!options_.fixed) plan_ahead(step);
      if (options_.enough && options_.enough(result_.steps)) break;
    }
    result_.micro_batches = world_.micro_batches();
    result_.second_leases = world_.coordinator().second_leases();
    return std::move(result_);
  }

 private:
  void run_step(uint64_t step) {
    const TimePoint begin = world_.now();
    const feed::Plan plan = world_.coordinator().plan_of(step, world_.now());
    world_.post_outbox();
    plan_in_force_ = plan.number;
    const auto cut = std::ranges::find(job_.cuts, plan.cut, &CutCosts::cut);
    now_ = {.choice = {static_cast<size_t>(cut - job_.cuts.begin()), plan.stems_away,
                       plan.local_inputs},
            .workers = world_.workers()};
    if (plan.stem_trains) publish_stems(step);
    run_micro_batches(step, plan, *cut);
    const TimePoint end_begins = world_.now();
    world_.run_device(job_.optimizer / world_.server().cores);
    of(now_.stalls, feed::StallCause::kOptimizer) += seconds_between(end_begins, world_.now());
    world_.coordinator().commit(step, world_.now());
    world_.post_outbox();
    now_.seconds = seconds_between(begin, world_.now());
    result_.steps.push_back(now_);
  }

  void publish_stems(uint64_t step) {
    const auto version = [&](uint64_t of) { return of > job_.staleness ? of - job_.staleness : 0; };
    for (uint64_t one = version(step); one <= std::min(step, version(step + 1)); ++one) {
      if (published_ && one <= *published_) continue;
      published_ = one;
      world_.coordinator().publish_stem(one, nothing_, nothing_, world_.now());
      world_.post_outbox();
    }
  }

  void run_micro_batches(uint64_t step, const feed::Plan& plan, const CutCosts& cut) {
    uint32_t pixels = 0;
    uint32_t local = 0;
    for (uint32_t index = 0; index < job_.micro_batches; ++index) {
      const feed::ReadyMicroBatch batch = take(step, index);
      const bool away = batch.cut > 0;
      if (!away) {
        ++pixels;
        if (!world_.origin(step, index, false).worker) ++local;
      }
      const double work = cut.head + (away ? 0 : cut.stem_here());
      device(work / world_.server().cores);
      if (!away || !cut.trains) continue;
      world_.coordinator().head_done(step, index, nullptr, world_.now());
      world_.post_outbox();
    }
    now_.local = pixels == 0 ? 0 : static_cast<double>(local) / pixels;
    if (!cut.trains) return;
    const uint32_t first = plan.first_away(job_.micro_batches);
    for (uint32_t i = 0; i < plan.stems_away; ++i) take_gradient(step, first + i);
  }

  void device(double seconds) {
    const TimePoint begin = world_.now();
    world_.run_device(seconds);
    now_.device += seconds_between(begin, world_.now());
  }

  feed::ReadyMicroBatch take(uint64_t step, uint32_t index) {
    const TimePoint asked = world_.now();
    auto batch =
        world_.wait_for([&] { return world_.coordinator().try_take(step, index, world_.now()); });
    note_wait(asked, step, index, false);
    return std::move(*batch);
  }

  void take_gradient(uint64_t step, uint32_t index) {
    const TimePoint asked = world_.now();
    static_cast<void>(world_.wait_for(
        [&] { return world_.coordinator().try_take_gradient(step, index, world_.now()); }));
    note_wait(asked, step, index, true);
  }

  void note_wait(TimePoint asked, uint64_t step, uint32_t index, bool gradient) {
    const double waited = seconds_between(asked, world_.now());
    if (waited > 0)
      feed::add_wait(waited, world_.origin(step, index, gradient).delivery, now_.stalls);
  }

  void plan_ahead(uint64_t step) {
    if (plan_in_force_ != newest_plan_) return;
    follow_rates();
    std::vector<WorkerRates> workers;
    for (const auto& one : known_) workers.push_back(one.second);
    planner_.measured(step, now_.choice, now_.seconds, workers.size());
    const auto decision = planner_.consider(step, known_server_, workers);
    if (!decision) return;
    present_ = decision->choice;
    world_.coordinator().set_plan(plan_of(job_, present_, ++newest_plan_));
    result_.moves.push_back({step + 1, present_, decision->reason});
  }

  void follow_rates() {
    const auto true_rates = world_.rates();
    const auto follow = [](double& known, double now) { known += kNewest * (now - known); };
    std::erase_if(known_, [&](const auto& one) { return !true_rates.contains(one.first); });
    for (const auto& [place, now] : true_rates) {
      WorkerRates& known = known_.try_emplace(place, now).first->second;
      follow(known.stem_speed, now.stem_speed);
      follow(known.decode, now.decode);
      follow(known.bytes_per_second, now.bytes_per_second);
    }
    follow(known_server_.cores, world_.server().cores);
    follow(known_server_.own_cores, world_.server().own_cores);
    follow(known_server_.decode, world_.server().decode);
    if (std::isfinite(known_server_.bytes_per_second))
      follow(known_server_.bytes_per_second, world_.server().bytes_per_second);
  }

  const JobCosts& job_;
  const SimulationOptions& options_;
  const data::Dataset dataset_;
  const std::shared_ptr<const std::vector<float>> nothing_ =
      std::make_shared<const std::vector<float>>();
  Choice present_;
  World world_;
  Planner planner_;
  ServerRates known_server_;
  std::map<size_t, WorkerRates> known_;  // by place in the cluster
  std::optional<uint64_t> published_;
  uint64_t newest_plan_ = 1;
  uint64_t plan_in_force_ = 1;
  SimulatedStep now_;
  SimulationResult result_;
};

std::string names_of(const std::vector<CutCosts>& cuts) {
  std::string names;
  for (const CutCosts& cut : cuts) names += (names.empty() ? "" : ", ") + cut.name;
  return names;
}

/// Throws where nobody is there at the start who may run the plan's stems.
void check_someone_runs_stems(const std::string& plan, const SimulatedCluster& cluster) {
  std::optional<uint64_t> first;
  for (const SimulatedWorker& worker : cluster.workers) {
    if (worker.rates.stems) first = std::min(first.value_or(worker.joins), worker.joins);
  }
  if (first == 0u) return;
  std::string why = "the cluster has no workers; describe one";
  if (first) {
    why = "the first worker that may joins at step " + std::to_string(*first) +
          "; let one be there from the start (joinStep: 0)";
  } else if (!cluster.workers.empty()) {
    why = "all workers have stems: false; let one run stems";
  }
  throw InvalidInput("nobody can run the stems of the simulated plan, " + plan + ": " + why +
                     ", or measure the job with cut: Auto");
}

void check(const JobCosts& job, const SimulatedCluster& cluster, const SimulationOptions& options) {
  if (!options.fixed) return;
  const Choice& plan = *options.fixed;
  if (plan.cut >= job.cuts.size())
    throw InvalidInput("the simulated plan has a cut that the profile lacks; there are " +
                       names_of(job.cuts));
  if (plan.away + plan.local > job.micro_batches)
    throw InvalidInput("the simulated plan has " + std::to_string(plan.away) + " stems away and " +
                       std::to_string(plan.local) + " local inputs; a step has " +
                       std::to_string(job.micro_batches) + " micro-batches for both");
  if (plan.away > 0) check_someone_runs_stems(describe(job, plan), cluster);
}

}  // namespace

double SimulationResult::mean_seconds(uint64_t from, uint64_t to) const {
  double sum = 0;
  for (uint64_t i = from; i < to; ++i) sum += steps.at(i).seconds;
  return sum / static_cast<double>(to - from);
}

double SimulationResult::percentile(double percent, uint64_t from) const {
  std::vector<double> seconds;
  for (uint64_t i = from; i < steps.size(); ++i) seconds.push_back(steps[i].seconds);
  std::ranges::sort(seconds);
  const auto rank =
      static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(seconds.size())));
  return seconds.at(std::clamp<size_t>(rank, 1, seconds.size()) - 1);
}

SimulationResult simulate(const JobCosts& job, const SimulatedCluster& cluster,
                          const SimulationOptions& options) {
  check(job, cluster, options);
  return Simulator(job, cluster, options).run();
}

}  // namespace outrigger::training
