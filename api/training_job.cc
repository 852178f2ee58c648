#include "api/training_job.h"

#include <algorithm>

namespace outrigger::api {

// Here, since to compare JSON takes a compiler half a second, in every source that knows a job.
bool ServerSpec::operator==(const ServerSpec&) const = default;
bool WorkersSpec::operator==(const WorkersSpec&) const = default;

int rank_count(const TrainingJobSpec& spec) {
  return spec.server.replicas * std::max(1, spec.server.gpus);
}

int ranks_per_pod(const TrainingJobSpec& spec) {
  return spec.server.engine == Engine::kExternal ? 1 : std::max(1, spec.server.gpus);
}

}  // namespace outrigger::api
