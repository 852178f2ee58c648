#include "api/training_job.h"

#include <algorithm>

namespace outrigger::api {

int rank_count(const TrainingJobSpec& spec) {
  return spec.server.replicas * std::max(1, spec.server.gpus);
}

int ranks_per_pod(const TrainingJobSpec& spec) {
  return spec.server.engine == Engine::kExternal ? 1 : std::max(1, spec.server.gpus);
}

}  // namespace outrigger::api
