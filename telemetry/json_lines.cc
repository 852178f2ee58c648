#include "telemetry/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::telemetry {
namespace {

// The file's size up to and with its last line break.
int64_t end_of_last_line(int fd, const std::filesystem::path& path) {
  off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) throw_errno("reading " + path.string(), errno);
  char piece[4096];
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof piece));
    const ssize_t got = ::pread(fd, piece, static_cast<size_t>(end - begin), begin);
    if (got <= 0) throw_errno("reading " + path.string(), got < 0 ? errno : EIO);
    const std::string_view text(piece, static_cast<size_t>(got));
    if (const size_t line = text.rfind('\n'); line != std::string_view::npos) {
      return begin + static_cast<int64_t>(line) + 1;
    }
    end = begin;
  }
  return 0;
}

// 0, or the errno of what failed.
int write_at(int fd, std::string_view text, int64_t offset) {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd, text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return 0;
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw IoError("creating " + path.parent_path().string() + ": " + error.message());
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_) throw_errno("opening " + path.string(), errno);
  size_ = end_of_last_line(file_.get(), path);
  if (::ftruncate(file_.get(), size_) != 0)
    throw_errno("cutting " + path.string() + " to whole lines", errno);
}

bool JsonLines::append(std::string_view json) {
  const std::string line = std::string(json) + "\n";
  const std::scoped_lock lock(mutex_);
  const int error = write_at(file_.get(), line, size_);
  if (error != 0) {
    ++dropped_;
    // Best effort: the next line is written over what is left of this one anyhow.
    [[maybe_unused]] const int cut = ::ftruncate(file_.get(), size_);
    if (!failing_)
      log::error("writing {}: {}; lines are dropped", path_.string(),
                 std::generic_category().message(error));
    failing_ = true;
    return false;
  }
  size_ += static_cast<int64_t>(line.size());
  if (failing_)
    log::warning("{} can be written again; {} lines were dropped", path_.string(), dropped_);
  failing_ = false;
  return true;
}

int64_t JsonLines::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

}  // namespace outrigger::telemetry
