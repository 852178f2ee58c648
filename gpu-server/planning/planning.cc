#include "gpu-server/planning/planning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/log.h"
#include "training/planner/alike.h"
#include "training/planner/model/memory.h"
#include "training/simulator/trial.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

uint32_t share_of(const api::TrainingJob& job, const RunSize& size) {
  return static_cast<uint32_t>(
      std::lround(*job.spec.split.share_percent / 100.0 * size.micro_batches));
}

/// How many times as long stems take where decoding does. A quota takes more of that, beside which
/// links take much, than of stems: by 1.3 of the 5.2 times at a quarter of a core.
double of_stems(double times_of_decoding) { return std::pow(times_of_decoding, 0.85); }

/// In costs.cuts; nothing where it is not known what the cut costs.
std::optional<size_t> place_of(int32_t cut, const training::JobCosts& costs) {
  const auto found = std::ranges::find(costs.cuts, cut, &training::CutCosts::cut);
  if (found == costs.cuts.end()) return std::nullopt;
  return static_cast<size_t>(found - costs.cuts.begin());
}

}  // namespace

training::PlannerOptions planner_options(const api::TrainingJob& job, const nn::Graph& graph,
                                         const RunSize& size, const training::JobCosts& costs) {
  const api::SplitSpec& split = job.spec.split;
  training::PlannerOptions options;
  options.least_server_percent = split.min_server_percent;
  if (split.max_bytes_per_second)
    options.most_bytes_per_second = static_cast<double>(*split.max_bytes_per_second);
  if (split.cut != api::kCutAuto) {
    // Nobody who names a cut wants another: where it cannot be, cut Input is left.
    options.cut = place_of(graph.cut(split.cut).layers, costs).value_or(costs.cuts.size());
  }
  if (split.share_percent) options.away = share_of(job, size);
  return options;
}

// Of one rank: each has workers of its own.
training::ScaleBounds scale_bounds(const api::TrainingJob& job) {
  const api::WorkersSpec& workers = job.spec.workers;
  const int ranks = api::rank_count(job.spec);
  const auto each = [&](int count) { return static_cast<uint32_t>((count + ranks - 1) / ranks); };
  training::ScaleBounds bounds;
  bounds.least = each(workers.min_replicas);
  bounds.most = each(workers.max_replicas.value_or(
      std::max(workers.replicas, ranks * static_cast<int>(bounds.most))));
  if (workers.autoscaling) bounds.target_stall = workers.autoscaling->target_stall_percent / 100.0;
  return bounds;
}

Planning::Planning(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                   const PlannedDevice& device)
    : job_(job),
      graph_(graph),
      size_(size),
      options_(planner_options(job, graph, size, device.costs)),
      planner_(device.costs, options_, training::by_simulation),
      block_samples_(device.block_samples),
      ranks_(static_cast<size_t>(api::rank_count(job.spec))) {
  for (Rank& rank : ranks_) {
    rank.rates.server.cores = device.cores;
    rank.rates.server.shared = device.shared;
    rank.rates.server.memory = device.memory;
  }
}

void Planning::found_before(const training::FoundPlan& plan) {
  const auto& cuts = planner_.job().cuts;
  const auto cut = std::ranges::find(cuts, plan.cut, &training::CutCosts::name);
  if (cut == cuts.end() || plan.micro_batches != size_.micro_batches ||
      plan.stems_away > plan.micro_batches ||
      plan.local_inputs > plan.micro_batches - plan.stems_away)
    return;
  planner_.found_before(
      {static_cast<size_t>(cut - cuts.begin()), plan.stems_away, plan.local_inputs});
}

void Planning::change(const api::SplitSpec& split, const api::WorkersSpec& workers) {
  job_.spec.split = split;
  job_.spec.workers = workers;
  options_ = planner_options(job_, graph_, size_, planner_.job());
  planner_.set_options(options_);
  desired_.reset();
}

bool Planning::knows(int32_t cut) const { return place_of(cut, planner_.job()).has_value(); }

/// Core-seconds that the device spends in a step.
double Planning::device_work(const training::Choice& choice) const {
  const training::JobCosts& job = planner_.job();
  const training::CutCosts& cut = job.cuts[choice.cut];
  return job.optimizer + cut.head * job.micro_batches +
         cut.stem_here() * (job.micro_batches - choice.away);
}

void Planning::note_device(Rank& rank, double busy) const {
  if (busy <= 0) return;
  constexpr double kLeast = 0.25;  // of what it did before: one step tells no more
  const double cores = device_work(planner_.present()) / busy;
  double& mean = rank.rates.server.cores;
  mean = rank.device_measured ? 0.8 * mean + 0.2 * std::max(cores, kLeast * mean) : cores;
  rank.device_measured = true;
}

/// Steps in which a worker is waited for that has made nothing yet: one that may run no stems gets
/// no work where all of them are away.
constexpr uint32_t kPatience = 20;

void Planning::note(Rank& rank, const RankMeasures& measures) {
  // A plan begins at the first step that is not drawn, which may be another step at each rank.
  if (measures.plan == plan_ && plan_ > 0) note_device(rank, measures.busy);
  if (measures.memory > 0) rank.rates.server.memory = measures.memory;
  rank.workers = measures.workers.size();
  const bool all_shown = std::ranges::none_of(
      measures.workers, [](const WorkerMeasures& worker) { return worker.decode == 0; });
  rank.unshown_for = all_shown ? 0 : rank.unshown_for + 1;
  rank.known = (all_shown || rank.unshown_for > kPatience) && rate(rank.rates, measures);
}

void Planning::heard(size_t rank, const RankMeasures& measures) { note(ranks_.at(rank), measures); }

double stem_speed(const training::JobCosts& job, const WorkerMeasures& worker) {
  constexpr double kLeast = 1e-12;  // where nothing else is known, what no longer counts does
  double work = 0;
  double took = 0;
  for (const training::CutCosts& cut : job.cuts) {
    const auto ran = worker.stems.find(cut.cut);
    if (ran == worker.stems.end() || ran->second.forward == 0) continue;
    const WorkerMeasures::Stem& stem = ran->second;
    const double weight = std::max(stem.weight, kLeast);
    work += weight * (cut.stem_forward + (stem.backward > 0 ? cut.stem_backward : 0));
    // A stem that no longer runs says what the machine was like: decoding tells what it is now.
    const double since = stem.decode > 0 ? of_stems(worker.work() / stem.decode) : 1;
    took += weight * since * (stem.forward + stem.backward);
  }
  if (took > 0) return work / took;
  if (worker.pass_seconds <= 0) return 0;
  const training::CutCosts& deepest = job.cuts.back();
  const double then = (deepest.stem_forward + deepest.stem_backward) / worker.pass_seconds;
  // What decoding tells of how the machine has changed since.
  return worker.work() > 0 ? then / of_stems(worker.work() / worker.first_work) : then;
}

training::WorkerRates Planning::rates_of(const WorkerMeasures& worker) const {
  training::WorkerRates rates;
  rates.decode = worker.decode;
  rates.stem_speed = stem_speed(planner_.job(), worker);
  rates.stems = rates.stem_speed > 0;
  if (worker.bytes_per_second > 0) rates.bytes_per_second = worker.bytes_per_second;
  rates.latency = worker.latency;
  rates.leases = feed::leases_in_hand(worker.cores, worker::micro_batch(job_));
  if (worker.memory > 0)
    rates.memory = feed::memory_beside(worker.memory, rates.leases, planner_.job().pixels);
  return rates;
}

// Cores of others are the best guess at what a worker that has made nothing takes to decode.
bool Planning::rate(training::RankRates& rank, const RankMeasures& measures) const {
  const double local = measures.local.decode;
  double core_seconds = local * measures.threads;  // to decode a micro-batch
  for (const WorkerMeasures& worker : measures.workers) {
    const double its = worker.decode * worker.cores;
    if (local > 0 || its == 0) continue;
    core_seconds = core_seconds == 0 ? its : std::min(core_seconds, its);
  }
  rank.workers.clear();
  for (const WorkerMeasures& worker : measures.workers) {
    rank.workers.push_back(rates_of(worker));
    if (worker.decode == 0) rank.workers.back().decode = core_seconds / worker.cores;
  }
  rank.server.decode = core_seconds / measures.threads;
  rank.server.own_cores = measures.threads;
  rank.server.stem_part =
      training::cores_at_work(block_samples_, static_cast<uint32_t>(worker::micro_batch(job_)),
                              measures.threads) /
      std::max(1u, measures.threads);
  return core_seconds > 0;
}

std::optional<uint32_t> Planning::desired_workers() {
  std::vector<training::RankRates> known;
  for (const Rank& rank : ranks_) {
    if (rank.known && !rank.rates.workers.empty()) known.push_back(rank.rates);
  }
  if (known.empty()) {
    desired_.reset();
    return std::nullopt;
  }
  const TimePoint now = system_now();
  if (!desired_ || (now >= desired_->again && !training::are_alike(desired_->rates, known))) {
    uint32_t most = 0;
    for (const training::RankRates& rank : known)
      most = std::max(most, training::desired_workers(planner_.job(), options_, rank.server,
                                                      rank.workers, scale_bounds(job_)));
    const double took = to_seconds(system_now() - now);
    desired_ = Desired{most * static_cast<uint32_t>(ranks_.size()), std::move(known),
                       now + std::chrono::duration_cast<Duration>(
                                 std::chrono::duration<double>(took / training::kPartForLooks))};
  }
  return desired_->workers;
}

std::string Planning::told_of_small_workers(const training::Choice& choice) const {
  std::ptrdiff_t small = 0;
  for (const Rank& rank : ranks_) {
    const auto& workers = rank.rates.workers;
    const double needs = training::memory_for_stems(planner_.job(), workers, choice);
    small += std::ranges::count_if(workers, [needs](const training::WorkerRates& worker) {
      return worker.stems && worker.memory < needs;
    });
  }
  if (small == 0) return "";
  return fmt::format("; {} workers have too little memory for its stems and make pixels only",
                     small);
}

std::optional<Planning::Proposal> Planning::after_step(const training::StepReport& report,
                                                       const RankMeasures& measures) {
  // Somebody may have asked for a cut that was left out, or lies deeper than plans go.
  const auto place = place_of(report.plan.cut, planner_.job());
  plan_ = place ? report.plan.number : 0;
  if (!place) return std::nullopt;
  const training::Choice present{*place, report.plan.stems_away, report.plan.local_inputs};
  size_t workers = measures.workers.size();
  std::vector<training::RankRates> others;
  for (size_t i = 1; i < ranks_.size(); ++i) {
    workers += ranks_[i].workers;
    others.push_back(ranks_[i].rates);
  }
  planner_.measured(report.step, present, to_seconds(report.took), workers);
  note(ranks_.front(), measures);
  if (!std::ranges::all_of(ranks_, &Rank::known)) return std::nullopt;
  const auto& [server, own] = ranks_.front().rates;
  const TimePoint begin = system_now();
  const auto decision = planner_.consider(report.step, server, own, others);
  if (planner_.has_looked()) planner_.took(to_seconds(system_now() - begin));
  if (!decision) return std::nullopt;
  Proposal proposal;
  proposal.plan.cut = planner_.job().cuts[decision->choice.cut].cut;
  proposal.plan.stems_away = decision->choice.away;
  proposal.plan.local_inputs = decision->choice.local;
  complete_plan(proposal.plan, graph_);
  set_wires(proposal.plan, job_);
  proposal.reason = decision->reason + told_of_small_workers(decision->choice);
  return proposal;
}

}  // namespace outrigger::gpu_server
