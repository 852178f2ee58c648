#include "cli/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/exit_codes.h"
#include "api/training_job.h"
#include "api/write.h"
#include "cli/local_run.h"
#include "cli/measured_job.h"
#include "cli/plan_bounds.h"
#include "cli/report/history.h"
#include "cli/sweep/rounds.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "common/stop_signal.h"
#include "common/thread_pool.h"
#include "training/planner/search.h"
#include "training/simulator/trial.h"

namespace outrigger::cli {
namespace {

/// What the model is asked with.
struct Machines {
  training::ServerRates server;
  std::vector<training::WorkerRates> workers;
};

/// Of a run that did not end well.
ShareRun failed_run(const LocalRunResult& result) {
  const int status = result.exit_status;
  std::string how = told_death(status, false);
  if (how.empty()) {
    const auto known = api::find_exit_code(status);
    how = fmt::format("ended with status {}{}", status,
                      known ? " (" + std::string(known->name) + ")" : "");
  }
  return {.exit_status = status,
          .failure = "its run " + how + "; its files are in " + result.directory.string()};
}

class Sweeper {
 public:
  Sweeper(const SweepOptions& options, const api::TrainingJob& job) : options_(options), job_(job) {
    const int ranks = api::rank_count(job.spec);
    if (options.workers < ranks)
      throw InvalidInput(
          fmt::format("--workers: {} is too small; the job has {} ranks, each with workers of its "
                      "own: at least "
                      "{}",
                      options.workers, ranks, ranks));
    const int parties = ranks + options.workers;
    const int share = std::max(1, available_cores() / parties);
    threads_ = options.threads.value_or(share);
    worker_threads_ = options.worker_threads.value_or(share);
    const MeasuredJob measured = measure_now();
    machines_ = machines(measured);
    profile_ = measured.profile;
    cut_ = choose_cut(measured.graph);
  }

  Sweep run(const KeepSweep& keep) const {
    const training::CutCosts& cut = profile_.costs.cuts[cut_];
    const training::CutCosts& whole = profile_.costs.cuts[0];
    Sweep sweep{.cut = cut.name, .workers = options_.workers};
    sweep.stem_part = 1 - cut.head / std::max(whole.head, 1e-12);
    for (const int percent : distinct(options_.shares)) sweep.points.push_back(point_of(percent));
    log::info("{}", length_text(sweep, options_.rounds));
    return run_rounds(
        std::move(sweep), options_.rounds,
        [this](const Sweep& so_far) { return reckon_anew(so_far); },
        [this](const SweepPoint& point, int round) { return measure(point, round); }, keep);
  }

 private:
  MeasuredJob measure_now() const {
    api::Launch launch;
    launch.mounts = options_.mounts;
    launch.device = options_.device;
    return measure_job(job_, launch, threads_);
  }

  /// Of one rank, of that which has the fewest workers. Links on one machine are as quick as its
  /// memory.
  Machines machines(const MeasuredJob& measured) const {
    constexpr double kLoopback = 1e9;
    const double decode = measured.profile.decode;
    Machines machines;
    machines.server = {.cores = measured.cores,
                       .decode = decode / threads_,
                       .shared = measured.shared,
                       .own_cores = static_cast<double>(threads_),
                       .stem_part = training::cores_at_work(measured.profile, threads_) / threads_};
    training::WorkerRates worker{
        .stem_speed = training::cores_at_work(measured.profile, worker_threads_),
        .decode = decode / worker_threads_,
        .bytes_per_second = kLoopback,
        .latency = 1e-4};
    give_room(worker, worker_threads_, measured.profile);
    machines.workers.assign(static_cast<size_t>(options_.workers / api::rank_count(job_.spec)),
                            worker);
    return machines;
  }

  /// A cut by any of its names, a stage's too.
  size_t place_of(const std::string& wanted, const nn::Graph& graph) const {
    const auto& cuts = profile_.costs.cuts;
    const auto found = std::ranges::find(cuts, graph.cut(wanted).layers, &training::CutCosts::cut);
    ensure(found != cuts.end(), "a cut that the job names is measured");
    return static_cast<size_t>(found - cuts.begin());
  }

  size_t choose_cut(const nn::Graph& graph) const {
    const auto& cuts = profile_.costs.cuts;
    const std::string& wanted = job_.spec.split.cut;
    if (wanted != api::kCutAuto && wanted != api::kCutInput) return place_of(wanted, graph);
    if (cuts.size() < 2)
      throw InvalidInput(
          "the job's network has no cut to sweep: each leaves the server less than half of the "
          "work, or does not fit into its memory");
    size_t best = 1;
    double least = 1e300;
    training::PlannerOptions bounds = profile_.options;
    bounds.cut.reset();
    bounds.away.reset();
    for (const auto& one :
         candidates(profile_.costs, bounds, machines_.server, machines_.workers)) {
      if (one.choice.cut == 0 || one.prediction.seconds >= least) continue;
      best = one.choice.cut;
      least = one.prediction.seconds;
    }
    return best;
  }

  training::Choice choice_of(uint32_t away) const { return {away == 0 ? 0 : cut_, away}; }

  static double seconds_of_step(const training::Profile& profile, const Machines& machines,
                                const training::Choice& choice) {
    const training::PlannerOptions free;
    const auto trial = training::by_simulation(profile.costs, training::kLongestTrials);
    return trial.seconds({profile.costs, free, machines.server, machines.workers}, choice);
  }

  /// By the seconds that a step takes.
  Reckoned reckon(const training::Profile& profile, const Machines& machines, uint32_t away,
                  double seconds) const {
    const training::JobCosts& costs = profile.costs;
    const double heads =
        away * costs.cuts[cut_].head + (costs.micro_batches - away) * costs.cuts[0].head;
    return {.predicted = std::isfinite(seconds) ? profile.batch / seconds : 0,
            .bound = profile.batch * machines.server.cores / (heads + costs.optimizer)};
  }

  /// The machine may be another one than it was: neighbours come and go.
  std::vector<Reckoned> reckon_anew(const Sweep& sweep) const {
    const MeasuredJob measured = measure_now();
    const Machines now = machines(measured);
    std::vector<Reckoned> reckoned;
    for (const SweepPoint& point : sweep.points)
      reckoned.push_back(reckon(measured.profile, now, point.away,
                                seconds_of_step(measured.profile, now, choice_of(point.away))));
    return reckoned;
  }

  SweepPoint point_of(int percent) const {
    const uint32_t all = profile_.costs.micro_batches;
    SweepPoint point{.share_percent = percent};
    point.away = static_cast<uint32_t>(std::lround(percent / 100.0 * all));
    const double seconds = seconds_of_step(profile_, machines_, choice_of(point.away));
    const Reckoned reckoned = reckon(profile_, machines_, point.away, seconds);
    point.predicted = reckoned.predicted;
    point.bound = reckoned.bound;
    const bool possible = std::isfinite(seconds);
    point.steps = options_.steps.value_or(usual_steps(possible ? 1 / seconds : 0));
    point.seconds = possible ? point.steps * seconds : 0;
    point.left_out = why_not(choice_of(point.away), seconds);
    return point;
  }

  /// Why the job's own bounds forbid a plan; empty: they do not.
  std::string why_not(const training::Choice& choice, double seconds) const {
    const api::SplitSpec& split = job_.spec.split;
    const double part = static_cast<double>(choice.away) / profile_.costs.micro_batches;
    const double server = 100 - (100 - profile_.costs.cuts[cut_].server_percent) * part;
    if (server < split.min_server_percent)
      return fmt::format("leaves {:.0f} % on the server, spec.split.minServerPercent is {}", server,
                         split.min_server_percent);
    const double rate =
        training::traffic(profile_.costs, choice, machines_.workers).fuller() / seconds;
    if (split.max_bytes_per_second && rate > static_cast<double>(*split.max_bytes_per_second))
      return fmt::format("moves {:.3g} bytes a second, spec.split.maxBytesPerSecond is {}", rate,
                         *split.max_bytes_per_second);
    return {};
  }

  ShareRun measure(const SweepPoint& point, int round) const {
    const api::TrainingJob job = job_of(job_, {.cut = profile_.costs.cuts[cut_].name,
                                               .share_percent = point.share_percent,
                                               .away = point.away,
                                               .round = round,
                                               .steps = point.steps});
    LocalRunOptions run;
    run.job_file = options_.output / (job.metadata.name + ".yaml");
    write_file_atomically(run.job_file, api::to_yaml(job));
    run.workers = options_.workers;
    run.mounts = options_.mounts;
    run.threads = threads_;
    run.worker_threads = worker_threads_;
    run.device = options_.device;
    run.output = options_.output;
    run.log_level = "warning";
    const LocalRunResult result = run_locally(run, job, stop_.token());
    if (stop_.token().stop_requested())
      throw Cancelled("the sweep was asked to stop; what it has measured is in " +
                      (options_.output / kSweepPage).string());
    if (result.exit_status != 0) {
      ShareRun failed = failed_run(result);
      log::warning("a share of {} % is run no more: {}", point.share_percent, failed.failure);
      return failed;
    }
    remove_weights(result.directory, point.steps);
    return measured_run(result.directory);
  }

  /// Without its first third, which warms up.
  ShareRun measured_run(const std::filesystem::path& folder) const {
    const auto steps = read_history(folder).steps;
    const auto first = steps.begin() + static_cast<ptrdiff_t>(steps.size() / 3);
    double seconds = 0;
    double waited = 0;
    for (auto at = first; at != steps.end(); ++at) {
      seconds += at->seconds;
      waited += at->waited;
    }
    const auto count = static_cast<double>(step_count({first, steps.end()}));
    return {.rate = profile_.batch * count / seconds, .stall_percent = 100 * waited / seconds};
  }

  const SweepOptions& options_;
  const api::TrainingJob& job_;
  StopSignal stop_;
  int threads_ = 1;
  int worker_threads_ = 1;
  training::Profile profile_;
  Machines machines_;
  size_t cut_ = 0;
};

}  // namespace

Sweep sweep(const SweepOptions& options, const api::TrainingJob& job) {
  std::error_code error;
  if (std::filesystem::exists(options.output) && !std::filesystem::is_empty(options.output, error))
    throw InvalidInput("--output: " + options.output.string() +
                       " is there and not empty; name a new folder");
  std::filesystem::create_directories(options.output, error);
  if (error) throw IoError("making " + options.output.string() + ": " + error.message());
  return Sweeper(options, job).run([&](const Sweep& told) {
    write_file_atomically(options.output / "sweep.json", to_json(told) + "\n");
    write_file_atomically(options.output / kSweepPage, sweep_page(job.metadata.name, told));
  });
}

}  // namespace outrigger::cli
