#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "common/bytes.h"

namespace outrigger {

/// The whole file. Throws IoError with the path, and when it is larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, size_t limit = size_t{1} << 40);

/// Writes beside `path`, syncs, and renames: after a crash either the old or the new content is
/// there. `mode` are the permissions of a new file, less the umask. IoError.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           unsigned mode = 0644);

/// Syncs a directory's entries to disk, so that a rename in it survives a crash. IoError.
void sync_directory(const std::filesystem::path& path);

/// A directory that is removed with all it holds when this goes out of scope; in TMPDIR, or /tmp.
/// Throws IoError where it cannot be made.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(std::string_view prefix = "outrigger");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

}  // namespace outrigger
