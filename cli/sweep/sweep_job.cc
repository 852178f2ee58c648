#include <algorithm>
#include <system_error>

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

int usual_steps(double steps_a_second) {
  // The first steps live on what was made before the device began, of a fast one for seconds.
  constexpr double kSeconds = 7.5;
  constexpr double kMostSeconds = 60;
  const double least = std::clamp(kMostSeconds * steps_a_second, 6.0, 30.0);
  return static_cast<int>(std::clamp(kSeconds * steps_a_second, least, 1000.0));
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
  its.spec.checkpoint.every_steps = run.steps;
  return its;
}

void remove_weights(const std::filesystem::path& folder, int steps) {
  std::error_code ignored;
  std::filesystem::remove(folder / "weights.safetensors", ignored);
  std::filesystem::remove_all(folder / fmt::format("step-{}", steps), ignored);
}

}  // namespace outrigger::cli
