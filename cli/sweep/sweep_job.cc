#include <algorithm>

#include "cli/sweep/sweep.h"
#include "common/log.h"

namespace outrigger::cli {

std::vector<int> distinct(const std::vector<int>& shares) {
  std::vector<int> once;
  for (const int share : shares) {
    if (std::ranges::find(once, share) == once.end()) once.push_back(share);
  }
  return once;
}

api::TrainingJob job_of(const api::TrainingJob& job, const SweepRun& run) {
  api::TrainingJob its = job;
  its.metadata.name = fmt::format("{}{}-{}", kRunOfSweep, run.share_percent, run.round);
  its.spec.split.cut = run.away == 0 ? std::string(api::kCutInput) : run.cut;
  if (run.away == 0) {
    its.spec.split.share_percent.reset();
  } else {
    its.spec.split.share_percent = run.share_percent;
  }
  its.spec.split.max_bytes_per_second.reset();  // bounds what a planner finds
  its.spec.training.epochs.reset();
  its.spec.training.steps = run.steps;
  its.spec.training.evaluate.reset();
  its.spec.data.validation.reset();
  // Beside the job's own checkpoints those of a sweep would stay, and be in the next one's way.
  its.spec.checkpoint.path.reset();
  its.spec.checkpoint.volume_claim_name.reset();
  return its;
}

}  // namespace outrigger::cli
