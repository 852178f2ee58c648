#include "telemetry/json_lines.h"

#include <fcntl.h>
#include <sys/file.h>
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

struct Written {
  size_t bytes = 0;
  int error = 0;  // the errno of what failed
};

// In one piece, unless the disk is full.
Written write_behind(int fd, std::string_view text) {
  Written done;
  while (done.bytes < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done.bytes, text.size() - done.bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      done.error = written < 0 ? errno : EIO;
      break;
    }
    done.bytes += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw IoError("creating " + path.parent_path().string() + ": " + error.message());
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw_errno("opening " + path.string(), errno);
  // Held until this ends. Where another process has it, its line may be under way just now.
  const bool alone = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  const int64_t whole = end_of_last_line(file_.get(), path);
  if (!alone) {
    torn_ = ::lseek(file_.get(), 0, SEEK_END) != whole;
  } else if (::ftruncate(file_.get(), whole) != 0) {
    throw_errno("cutting " + path.string() + " to whole lines", errno);
  }
}

// Only where nobody has written behind it.
void JsonLines::cut_last(size_t written) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);
  const bool is_last = end >= 0 && ::lseek(file_.get(), 0, SEEK_END) == end;
  torn_ = torn_ || !is_last || ::ftruncate(file_.get(), end - static_cast<off_t>(written)) != 0;
}

bool JsonLines::append(std::string_view json) {
  const std::scoped_lock lock(mutex_);
  std::string line(torn_ ? "\n" : "");
  line.append(json).append("\n");
  const Written done = write_behind(file_.get(), line);
  if (done.error != 0) {
    ++dropped_;
    if (done.bytes > 0) cut_last(done.bytes);
    if (!failing_)
      log::error("writing {}: {}; lines are dropped", path_.string(),
                 std::generic_category().message(done.error));
    failing_ = true;
    return false;
  }
  torn_ = false;
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
