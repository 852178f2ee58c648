#include "cli/run_secrets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <span>
#include <string>
#include <system_error>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders = "outrigger-run";
constexpr const char* kLock = "lock";

/// A folder itself, no link to one.
bool is_own_folder(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

bool is_left(const fs::path& path, fs::file_time_type now) {
  if (!path.filename().string().starts_with(std::string(kFolders) + ".")) return false;
  if (!is_own_folder(path)) return false;
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (error || now - written < std::chrono::days(1)) return false;
  // Without a lock it is not known whether somebody is at it.
  return fs::is_regular_file(fs::symlink_status(path / kLock, error));
}

}  // namespace

RunSecrets::RunSecrets() : folder_(kFolders) {
  lock_ = FileLock::take(folder_.path() / kLock);
  const std::string bytes = random_bytes(32);
  write_file_atomically(token_file(), to_hex(std::as_bytes(std::span(bytes))) + "\n", 0600);
  // Where locks lock nothing, a run that lives looks like one that was killed.
  const bool locks = !FileLock::take(folder_.path() / kLock);
  if (locks) remove_left_folders(folder_.path().parent_path(), fs::file_time_type::clock::now());
}

fs::path RunSecrets::token_file() const { return folder_.path() / "join-token"; }

void remove_left_folders(const fs::path& parent, fs::file_time_type now) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const fs::path path = at->path();
    if (!is_left(path, now)) continue;
    try {
      if (!FileLock::take(path / kLock)) continue;
    } catch (const IoError&) {
      continue;
    }
    std::error_code refused;
    fs::remove_all(path, refused);
    if (!refused) log::debug("removed {}, which a run that was killed had left", path.string());
  }
}

}  // namespace outrigger::cli
