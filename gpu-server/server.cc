#include "gpu-server/server.h"

#include <memory>
#include <utility>

#include "api/parse.h"
#include "api/support.h"
#include "gpu-server/doors.h"
#include "gpu-server/replicas.h"
#include "gpu-server/run.h"

namespace outrigger::gpu_server {

api::ExitCode run_server(const api::Launch& launch, const std::stop_token& stop) {
  api::TrainingJob job = api::load_training_job(launch.job_file);
  api::require_supported(job, {});
  auto listener = open_listener(launch, job);
  const auto reducer = meet_replicas(launch, job, *listener);
  Run run(launch, std::move(job), stop, std::move(listener), reducer.get());
  return run.train();
}

}  // namespace outrigger::gpu_server
