#include "common/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "common/error.h"

namespace outrigger {

std::optional<FileLock> FileLock::take(const std::filesystem::path& file) {
  // Writable, as NFS wants it of a file that is locked.
  FileDescriptor opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!opened) throw_errno("opening " + file.string(), errno);
  while (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::nullopt;
    const bool unknown_here = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
    if (!unknown_here) throw_errno("locking " + file.string(), errno);
    break;
  }
  return FileLock(std::move(opened));
}

}  // namespace outrigger
