#pragma once

#include <optional>
#include <span>
#include <vector>

#include "api/training_job.h"
#include "feed/plan.h"
#include "gpu-server/job_costs.h"
#include "gpu-server/job_plan.h"
#include "gpu-server/worker_book.h"
#include "nn/graph.h"
#include "training/planner/desired_workers.h"
#include "training/planner/planner.h"
#include "training/trainer.h"

namespace outrigger::gpu_server {

/// The bounds that spec.split sets: a cut that is named, which `costs` has, is kept, so is a share.
training::PlannerOptions planner_options(const api::TrainingJob& job, const nn::Graph& graph,
                                         const RunSize& size, const training::JobCosts& costs);

/// Between how many workers spec.workers lets their number follow the stall.
training::ScaleBounds scale_bounds(const api::TrainingJob& job);

/// How many core-seconds of `job` a worker does in a second when it runs stems; 0: it cannot say.
double stem_speed(const training::JobCosts& job, const WorkerMeasures& worker);

/// Finds the plan while the job runs: turns what steps and workers told into the planner's terms,
/// and its decisions into plans. One thread.
class Planning {
 public:
  /// `graph` must outlive this. `threads`: of the server's own worker.
  Planning(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size, int threads,
           const PlannedDevice& device);

  /// What the job says of its split and its workers from now on.
  void change(const api::SplitSpec& split, const api::WorkersSpec& workers);

  /// Whether it is known what that cut costs: not where its program does not fit into the device.
  bool knows(int32_t cut) const;

  /// After each step. A plan without a number where the work is better divided otherwise, with the
  /// reason.
  struct Proposal {
    feed::Plan plan;
    std::string reason;
  };
  std::optional<Proposal> after_step(const training::StepReport& report,
                                     std::span<const WorkerMeasures> workers,
                                     const WorkerMeasures& local);
  /// How many workers the job can use, by what the last step told; nothing where no worker is
  /// there to tell what one brings.
  std::optional<uint32_t> desired_workers() const;

 private:
  double device_work(const training::Choice& choice) const;
  void note_device(const training::StepReport& report, const training::Choice& choice);
  /// False where too little is known yet.
  bool rate(std::span<const WorkerMeasures> workers, const WorkerMeasures& local);
  training::WorkerRates rates_of(const WorkerMeasures& worker) const;

  api::TrainingJob job_;
  const nn::Graph& graph_;
  const RunSize size_;
  training::PlannerOptions options_;
  training::Planner planner_;
  const int threads_;
  training::ServerRates server_;
  std::vector<training::WorkerRates> workers_;
  bool device_measured_ = false;
};

}  // namespace outrigger::gpu_server
