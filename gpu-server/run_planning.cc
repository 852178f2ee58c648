#include "common/log.h"
#include "gpu-server/run.h"
#include "nn/cuda/errors.h"

/// How a run finds its plan and takes it.
namespace outrigger::gpu_server {

void Run::plan_from_now_on() {
  if (!first_rank() || !(wants_planner(job_) || job_.spec.workers.autoscaling)) return;
  try {
    planning_.emplace(job_, graph_, size_, threads_.size(), planned_device());
  } catch (const nn::cuda::OutOfDeviceMemory& error) {
    log::warning(
        "the plan stays as it starts, or as POST /plan says, and nobody is told how many workers "
        "are wanted: the GPU has no room to measure what plans cost: {}",
        error.what());
  }
}

PlannedDevice Run::planned_device() {
  if (device_.emulation != nullptr)
    return emulated_device(device_.emulation->profile, launch_.emulate_cores, size_);
  if (!device_.is_gpu) return measured_device(job_, graph_, size_, threads_);
  PlannedDevice device =
      measured_gpu(*device_.backend, trainer_.options().device, job_, graph_, size_, threads_);
  log::info("the GPU takes {:.3f} ms for a micro-batch, {:.3f} ms for the optimizer's step",
            1e3 * device.costs.cuts.front().head, 1e3 * device.costs.optimizer);
  return device;
}

Wishes Run::settle() {
  Wishes mine{stop_wanted_, without_gain()};
  {
    const std::scoped_lock lock(wish_mutex_);
    mine.plan = std::exchange(wanted_plan_, std::nullopt);
  }
  Wishes all = agreement_.settle(mine);
  if (all.plan && all.plan->number > plan_.number) {
    plan_ = *all.plan;
    complete_plan(plan_, graph_);
    trainer_.set_plan(plan_);
    const std::scoped_lock lock(wish_mutex_);
    reporter_.plan(plan_, trainer_.counters().step, wanted_reason_);
    log::info("plan {} from step {} or the next: {}", plan_.number, trainer_.counters().step,
              wanted_reason_);
  }
  return all;
}

void Run::wish(feed::Plan plan, const std::string& reason) {
  const std::scoped_lock lock(wish_mutex_);
  plan.number = ++last_plan_;
  wanted_plan_ = std::move(plan);
  wanted_reason_ = reason;
}

void Run::plan_ahead(const training::StepReport& report, const ServerFeed::Measures& measures) {
  if (!planning_ || report.plan.number != plan_.number) return;  // the newest has not begun
  auto proposal = planning_->after_step(report, measures.workers, measures.local);
  if (proposal && wants_planner(job_) && !plan_fixed_)
    wish(std::move(proposal->plan), proposal->reason);
}

void Run::tell_of_workers(const training::StepReport& report,
                          const ServerFeed::Measures& measures) {
  constexpr Duration kEvery = std::chrono::seconds(2);
  const bool last = report.step + 1 == size_.total_steps;
  if (!last && workers_told_ && clock_.now() < *workers_told_ + kEvery) return;
  workers_told_ = clock_.now();
  reporter_.workers(report.step, measures.workers);
  if (!planning_) return;
  if (const auto desired = planning_->desired_workers()) reporter_.desired_workers(*desired);
}

}  // namespace outrigger::gpu_server
