#include "api/defaults.h"

#include <algorithm>

namespace outrigger::api {
namespace {

// Large enough that a lease costs little, small enough that a step has several and batch norm
// behaves as in published recipes (32 samples to a device).
constexpr int kUsualMicroBatch = 32;

void default_micro_batch(TrainingJobSpec& spec) {
  const int ranks = rank_count(spec);
  if (spec.training.micro_batch_size || spec.training.batch_size <= 0 || ranks <= 0) return;
  if (spec.training.batch_size % ranks != 0) return;
  const int rank_batch = spec.training.batch_size / ranks;
  int size = std::min(kUsualMicroBatch, rank_batch);
  while (rank_batch % size != 0) --size;
  spec.training.micro_batch_size = size;
}

}  // namespace

void apply_defaults(TrainingJob& job) {
  TrainingJobSpec& spec = job.spec;
  default_micro_batch(spec);
  if (spec.data.validation && !spec.training.evaluate) spec.training.evaluate = EvaluateSpec{};
}

}  // namespace outrigger::api
