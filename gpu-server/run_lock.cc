#include "gpu-server/run_lock.h"

#include <system_error>
#include <utility>

#include "common/error.h"
#include "gpu-server/doors.h"

namespace outrigger::gpu_server {

namespace fs = std::filesystem;

RunLock::RunLock(const api::TrainingJob& job, const api::Launch& launch) {
  if (launch.rank != 0 || launch.attempt > 0) return;
  const fs::path run = api::run_directory(job, launch);
  const fs::path checkpoints = api::checkpoint_directory(job, launch);
  take(run);
  std::error_code absent;  // then it is another folder
  if (!fs::equivalent(run, checkpoints, absent)) take(checkpoints);
}

void RunLock::take(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError("making the folder " + folder.string() + ": " + error.message());
  auto lock = FileLock::take(folder / ".lock");
  if (!lock) {
    throw InvalidInput("another run writes to " + folder.string() +
                       ": stop it or wait for its end, or give this one another folder (--output, "
                       "spec.output.path, spec.checkpoint.path)");
  }
  locks_.push_back(std::move(*lock));
}

void remove_former_endpoints(const api::TrainingJob& job, const api::Launch& launch) {
  const RunLock alone(job, launch);
  const fs::path directory = api::run_directory(job, launch);
  for (int rank = 0; rank < launch.replicas; ++rank) {
    std::error_code error;
    fs::remove(directory / endpoints_name(rank), error);
    if (error)
      throw IoError("removing " + (directory / endpoints_name(rank)).string() + ": " +
                    error.message());
  }
}

}  // namespace outrigger::gpu_server
