#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "common/file.h"
#include "common/file_lock.h"

namespace outrigger::cli {

/// The folder for temporary files of a local run, which holds its join token: locked while the run
/// is at it, removed with it. One that was killed leaves its folder; the next run a day later
/// removes it.
class RunSecrets {
 public:
  /// Throws IoError.
  RunSecrets();
  /// Of a token that nobody knew before.
  std::filesystem::path token_file() const;

 private:
  TemporaryDirectory folder_;
  std::optional<FileLock> lock_;
};

/// Removes the folders of runs in `parent` that are older than a day, this user's, and locked by
/// nobody. What cannot be removed stays.
void remove_left_folders(const std::filesystem::path& parent, std::filesystem::file_time_type now);

}  // namespace outrigger::cli
