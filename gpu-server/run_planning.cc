#include "common/error.h"
#include "common/log.h"
#include "gpu-server/planning/memory_check.h"
#include "gpu-server/run.h"
#include "training/planner/batch_advice.h"
#include "training/planner/model/memory.h"
#include "training/planner/reason.h"
#include "worker/job.h"

/// How a run finds its plan and takes it.
namespace outrigger::gpu_server {
namespace {

bool wants_planning(const api::TrainingJob& job) {
  return wants_planner(job) || job.spec.workers.autoscaling.has_value();
}

void warn_of_share(const api::TrainingJob& job, const RunSize& size) {
  if (const auto advice = share_advice(job, size)) log::warning("{}", *advice);
}

}  // namespace

void Run::plan_from_now_on() {
  if (!first_rank() || !wants_planning(edited_)) return;
  const auto device = planned_device();
  if (!device) return;
  // One that trains does, whatever was reckoned.
  if (!ready_ && wants_planner(edited_) && !device_is_cores())
    check_memory(device->costs, edited_, device->memory);
  for (const training::CutCosts& cut : device->costs.cuts)
    stem_memory_.try_emplace(cut.cut, training::stem_memory(device->costs, cut));
  reporter_.profile(device->costs);
  planning_.emplace(edited_, graph_, size_, *device);
  const auto& found = trainer_.counters().plan;
  if (!ready_ && found) planning_->found_before(*found);
}

std::optional<PlannedDevice> Run::planned_device() {
  if (device_.emulation != nullptr)
    return emulated_device(device_.emulation->profile, launch_.emulate_cores, size_);
  std::optional<PlannedDevice> device;
  if (device_.is_gpu) {
    device = measured_gpu_if_possible(*device_.backend, trainer_.options().device, edited_, graph_,
                                      size_, threads_);
    if (!device) return std::nullopt;
    log::info("the GPU takes {:.3f} ms for a micro-batch, {:.3f} ms for the optimizer's step",
              1e3 * device->costs.cuts.front().head, 1e3 * device->costs.optimizer);
  } else {
    device = measured_device(edited_, graph_, size_, threads_);
  }
  device->memory = static_cast<double>(free_memory_);
  return device;
}

void Run::take_edit() {
  api::TrainingJob before;
  bool asked_since = false;
  {
    const std::scoped_lock lock(wish_mutex_);
    if (!wanted_edit_) return;  // as behind nearly every step
    before = std::exchange(edited_, *std::exchange(wanted_edit_, std::nullopt));
    asked_since = plan_fixed_;
    // What the planner wished for in between it wished for the job as it was.
    if (edited_.spec.split != before.spec.split && !asked_since) wanted_plan_.reset();
  }
  follow_edit(before);
  if (edited_.spec.split == before.spec.split || asked_since) return;
  warn_of_share(edited_, size_);
  const feed::Plan plan = plan_of_edit();
  if (planning_ && !planning_->knows(plan.cut)) {
    log::warning("spec.split.cut: '{}' does not fit into the device's memory; {}", plan.cut_name,
                 wants_planner(edited_) ? "the planner goes to cut Input" : "the plan stays");
  } else if (plan != plan_) {
    wish(plan, "spec.split was edited", Wisher::kEdit);
  }
}

void Run::follow_edit(const api::TrainingJob& before) {
  const bool other_wires = edited_.spec.split.wire != before.spec.split.wire;
  if (planning_ && !other_wires) {
    planning_->change(edited_.spec.split, edited_.spec.workers);
    return;
  }
  if (!planning_ && wants_planning(before)) return;  // there was no room to measure
  try {
    planning_.reset();
    plan_from_now_on();
  } catch (const Error& error) {
    log::warning("the plan stays as it is: {}", error.what());
  }
}

// What is left to the planner it finds from where the run is.
feed::Plan Run::plan_of_edit() {
  const bool goes_on = goes_on_from(plan_, edited_, graph_);
  feed::Plan plan = goes_on ? plan_ : make_plan(edited_, graph_, size_, 0);
  if (goes_on && planning_ && !planning_->knows(plan.cut)) plan = {};
  if (plan.cut > 0) set_wires(plan, edited_);
  plan.number = plan_.number;
  complete(plan);
  return plan;
}

// A plan that somebody asked for is no find: it ends with the run.
std::optional<training::FoundPlan> Run::found_plan() {
  const size_t workers = feed_.snapshot().workers;
  const std::scoped_lock lock(wish_mutex_);
  if (!planning_ || plan_fixed_ || !wants_planner(edited_)) return std::nullopt;
  if (workers == 0) return trainer_.counters().plan;  // such a while tells nothing
  return training::FoundPlan{.cut = plan_.cut_name,
                             .stems_away = plan_.stems_away,
                             .local_inputs = plan_.local_inputs,
                             .micro_batches = size_.micro_batches};
}

// Memory before anything is measured, which runs whole micro-batches.
feed::Plan Run::first_plan() {
  feed::Plan plan = make_plan(job_, graph_, size_, 1);
  if (first_rank()) warn_of_share(job_, size_);
  if (!wants_planner(job_)) {
    warn_of_memory(plan);
  } else if (first_rank() && device_is_cores()) {
    check_memory_of_cores(job_, graph_, size_, static_cast<double>(free_memory_), threads_);
  }
  complete(plan);
  return plan;
}

// A GPU runs many micro-batches at once, and those of a kind must lie side by side for that.
void Run::complete(feed::Plan& plan) {
  complete_plan(plan, graph_);
  plan.stem_memory = stem_memory_of(plan.cut);
  plan.here_last = plan.stem_trains && !device_.stands_alone()
                       ? feed::best_here_last(size_.micro_batches, plan.stems_away)
                       : 0;
}

feed::StemMemory Run::stem_memory_of(int32_t cut) {
  if (device_.emulation != nullptr) return {};  // stems of machines that compute nothing
  const auto known = stem_memory_.find(cut);
  if (known != stem_memory_.end()) return known->second;
  return stem_memory_[cut] = stem_memory_at(cut, job_, graph_, size_, threads_);
}

Wishes Run::settle() {
  take_edit();
  const std::vector<uint32_t> broken = feed_.broken_samples();
  Wishes mine{.stop = stop_wanted_,
              .stop_early = without_gain(),
              .hears = planning_.has_value(),
              .tells_broken = broken_.has_news(broken)};
  {
    const std::scoped_lock lock(wish_mutex_);
    mine.plan = std::exchange(wanted_plan_, std::nullopt);
    mine.progress_deadline = edited_.spec.progress_deadline;
  }
  Wishes all = agreement_.settle(mine);
  if (!first_rank()) watchdog_->set_progress_limit(all.progress_deadline + patience());
  if (reducer_ != nullptr && all.hears) hear_ranks();
  if (reducer_ != nullptr && all.tells_broken) broken_.share(agreement_, broken);
  if (all.plan && all.plan->number > plan_.number) {
    plan_ = *all.plan;
    complete(plan_);
    trainer_.set_plan(plan_);
    advise(plan_);
    tell_of_plan();
  }
  return all;
}

void Run::tell_of_plan() {
  bool asked_for = false;
  {
    const std::scoped_lock lock(wish_mutex_);
    asked_for = plan_fixed_ || !wants_planner(edited_);
    const std::string reason =
        wanted_reason_.empty() && !first_rank() ? "as the first rank decided" : wanted_reason_;
    reporter_.plan(plan_, trainer_.counters().step, reason);
    log::info("plan {} from step {} or the next: {}", plan_.number, trainer_.counters().step,
              reason);
  }
  if (first_rank() && asked_for) warn_of_memory(plan_);
}

void Run::hear_ranks() {
  constexpr uint64_t kEvery = 4;
  if (settled_++ % kEvery != 0) return;
  const auto told = agreement_.gather(first_rank() ? std::vector<float>() : pack(measured_));
  for (size_t rank = 1; planning_ && rank < told.size(); ++rank)
    planning_->heard(rank, unpack_rank(told[rank]));
}

// Where plans are looked for none is taken that memory does not hold.
void Run::warn_of_memory(const feed::Plan& plan) {
  if (!device_is_cores()) return;
  const training::JobCosts costs = sizes_at(plan.cut, job_, graph_, size_, threads_);
  if (costs.cuts.back().cut != plan.cut) return;
  const auto remote = static_cast<size_t>(edited_.spec.workers.replicas) /
                      static_cast<size_t>(api::rank_count(job_.spec));
  const training::Choice choice{costs.cuts.size() - 1, plan.stems_away, plan.local_inputs};
  const double needs = total(server_memory(costs, choice, remote * feed::kLeasesInHand));
  if (needs <= static_cast<double>(free_memory_)) return;
  log::warning(
      "{} needs {:.0f} MB in the server, {:.0f} were free when it started: it may be killed for "
      "that; micro-batches of fewer samples take less",
      training::describe(costs, choice), needs / 1e6, static_cast<double>(free_memory_) / 1e6);
}

void Run::advise(const feed::Plan& plan) {
  const bool trained_away = plan.stem_trains && plan.stems_away > 0;
  const auto few = training::levelling_advice(size_.micro_batches);
  if (advised_ || !trained_away || !few) return;
  advised_ = true;
  log::warning("{}", *few);
}

void Run::warn_of_stems(const feed::Plan& plan, const FeedSnapshot& feed) {
  if (plan.stems_away == 0 || plan.number != plan_.number || warned_of_ == plan.number) return;
  if (feed.workers == 0 || feed.stem_workers > 0) return;
  warned_of_ = plan.number;
  log::warning(
      "the server runs the stems of {} itself: of its {} workers none may run stems and has the "
      "{:.0f} MB that they take",
      plan.cut_name, feed.workers,
      plan.stem_memory.needs(plan.stems_away, plan.stem_trains, feed.workers) / 1e6);
}

void Run::wish(feed::Plan plan, const std::string& reason, Wisher wisher) {
  const std::scoped_lock lock(wish_mutex_);
  if (wisher == Wisher::kPlanner && plan_fixed_) return;
  plan_fixed_ |= wisher == Wisher::kPerson;
  plan.number = ++last_plan_;
  wanted_plan_ = std::move(plan);
  wanted_reason_ = reason;
}

void Run::plan_ahead(const training::StepReport& report, const RankMeasures& measures) {
  if (!planning_ || report.plan.number != plan_.number) return;  // the newest has not begun
  auto proposal = planning_->after_step(report, measures);
  if (proposal && wants_planner(edited_))
    wish(std::move(proposal->plan), proposal->reason, Wisher::kPlanner);
}

void Run::tell_of_workers(const training::StepReport& report, const RankMeasures& measures) {
  constexpr Duration kEvery = std::chrono::seconds(2);
  if (workers_told_ && clock_.now() < *workers_told_ + kEvery) return;
  workers_told_ = clock_.now();
  if (planning_) reporter_.desired_workers(planning_->desired_workers());
  if (workers_pace_.due(*workers_told_, measures.workers))
    reporter_.workers(report.step, measures.workers, measures.local);
  constexpr Duration kLayersEvery = std::chrono::minutes(5);
  if (!layers_told_) layers_told_ = clock_.now();
  if (clock_.now() < *layers_told_ + kLayersEvery) return;
  layers_told_ = clock_.now();
  reporter_.layers(report.step, graph_, trainer_.layer_seconds(), measures.workers);
}

}  // namespace outrigger::gpu_server
