#include "gpu-server/server.h"

#include "api/parse.h"
#include "api/support.h"
#include "gpu-server/run.h"

namespace outrigger::gpu_server {

api::ExitCode run_server(const api::Launch& launch, const std::stop_token& stop) {
  api::TrainingJob job = api::load_training_job(launch.job_file);
  api::require_supported(job, {});
  Run run(launch, std::move(job), stop, nullptr);
  return run.train();
}

}  // namespace outrigger::gpu_server
