#pragma once

#include <optional>
#include <vector>

#include "api/training_job.h"
#include "feed/plan.h"
#include "gpu-server/job/job_plan.h"
#include "gpu-server/planning/job_costs.h"
#include "gpu-server/planning/rank_measures.h"
#include "gpu-server/planning/worker_book.h"
#include "nn/graph.h"
#include "training/planner/desired_workers.h"
#include "training/planner/planner.h"
#include "training/state.h"
#include "training/trainer/trainer.h"

namespace outrigger::gpu_server {

/// The bounds that spec.split sets: a cut that is named is kept, so is a share. Of a cut that
/// `costs` lacks, as it did not fit, only cut Input is left.
training::PlannerOptions planner_options(const api::TrainingJob& job, const nn::Graph& graph,
                                         const RunSize& size, const training::JobCosts& costs);

/// Between how many workers spec.workers lets their number follow the stall.
training::ScaleBounds scale_bounds(const api::TrainingJob& job);

/// How many core-seconds of `job` a worker does in a second when it runs stems; 0: it cannot say.
double stem_speed(const training::JobCosts& job, const WorkerMeasures& worker);

/// Finds the plan of all ranks while the job runs: turns what steps and workers told into the
/// planner's terms, and its decisions into plans. Lives at the first rank. One thread.
class Planning {
 public:
  /// `graph` must outlive this.
  Planning(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
           const PlannedDevice& device);

  /// The plan of an earlier run of the job, from its checkpoint.
  void found_before(const training::FoundPlan& plan);

  /// What the job says of its split and its workers from now on.
  void change(const api::SplitSpec& split, const api::WorkersSpec& workers);

  /// Whether it is known what that cut costs: not where its program does not fit into the device.
  bool knows(int32_t cut) const;

  /// How a further rank gets on, in the step that was told of last.
  void heard(size_t rank, const RankMeasures& measures);

  /// After each step, with what was measured at the first rank. A plan without a number where the
  /// work is better divided otherwise, with the reason; nothing until all ranks were heard.
  struct Proposal {
    feed::Plan plan;
    std::string reason;
  };
  std::optional<Proposal> after_step(const training::StepReport& report,
                                     const RankMeasures& measures);
  /// How many workers the job can use, by what the last step told of the rank that wants most;
  /// nothing where no worker is there to tell what one brings. Reckoned anew where machines have
  /// changed, and no more often than that is worth.
  std::optional<uint32_t> desired_workers();

 private:
  struct Rank {
    training::RankRates rates;
    size_t workers = 0;  // known or not
    bool device_measured = false;
    bool known = false;        // enough to plan
    uint32_t unshown_for = 0;  // steps in which some worker has made nothing yet
  };
  /// What was reckoned last.
  struct Desired {
    uint32_t workers = 0;
    std::vector<training::RankRates> rates;  // for these
    TimePoint again;                         // not before then
  };
  double device_work(const training::Choice& choice) const;
  void note(Rank& rank, const RankMeasures& measures);
  void note_device(Rank& rank, double busy) const;
  /// False where too little is known yet.
  bool rate(training::RankRates& rank, const RankMeasures& measures) const;
  training::WorkerRates rates_of(const WorkerMeasures& worker) const;
  /// A clause for people where some workers have too little memory for a plan's stems.
  std::string told_of_small_workers(const training::Choice& choice) const;

  api::TrainingJob job_;
  const nn::Graph& graph_;
  const RunSize size_;
  training::PlannerOptions options_;
  training::Planner planner_;
  const uint32_t block_samples_;  // of passes on cores; 0: not known
  std::vector<Rank> ranks_;
  std::optional<Desired> desired_;
  uint64_t plan_ = 0;  // the number of the one that planner_ was told of last; 0: of none it knows
};

}  // namespace outrigger::gpu_server
