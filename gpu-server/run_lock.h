#pragma once

#include <filesystem>
#include <vector>

#include "api/launch.h"
#include "api/training_job.h"
#include "common/file_lock.h"

namespace outrigger::gpu_server {

/// Keeps other runs out of a run's folder and out of that of its checkpoints as long as it lives.
/// Only the first rank takes them, for all. An attempt that a launcher counts takes none: it must
/// get in while the one before may still be ending, which it shuts out by its number
/// (training::CheckpointStore).
class RunLock {
 public:
  /// Makes the folders where absent and writes nothing else. Throws InvalidInput where another run
  /// has one of them, IoError.
  RunLock(const api::TrainingJob& job, const api::Launch& launch);

 private:
  void take(const std::filesystem::path& folder);
  std::vector<FileLock> locks_;
};

/// For launchers: removes what former servers of the run wrote of their ports, so that what is
/// there later is the new ones'. Throws as RunLock where a former run is still at it.
void remove_former_endpoints(const api::TrainingJob& job, const api::Launch& launch);

}  // namespace outrigger::gpu_server
