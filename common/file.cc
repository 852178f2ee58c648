#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "common/error.h"

namespace outrigger {
namespace {

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("writing " + path.string(), errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::string read_file(const std::filesystem::path& path, size_t limit) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw_errno("opening " + path.string(), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw_errno("reading " + path.string(), errno);
  std::string content;
  content.reserve(static_cast<size_t>(info.st_size));
  char piece[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("reading " + path.string(), errno);
    if (got == 0) return content;
    content.append(piece, static_cast<size_t>(got));
    if (content.size() > limit) {
      throw IoError(path.string() + " is larger than the limit of " + std::to_string(limit) +
                    " bytes");
    }
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           unsigned mode) {
  const std::filesystem::path beside = path.string() + ".tmp." + std::to_string(::getpid());
  FileDescriptor fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) throw_errno("creating " + beside.string(), errno);
  try {
    write_all(fd.get(), content, beside);
    if (::fsync(fd.get()) != 0) throw_errno("syncing " + beside.string(), errno);
    if (::rename(beside.c_str(), path.c_str()) != 0) {
      throw_errno("renaming " + beside.string() + " to " + path.string(), errno);
    }
  } catch (const IoError&) {
    ::unlink(beside.c_str());
    throw;
  }
}

void sync_directory(const std::filesystem::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw_errno("opening " + path.string(), errno);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) throw_errno("syncing " + path.string(), errno);
}

TemporaryDirectory::TemporaryDirectory(std::string_view prefix) {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* told = std::getenv("TMPDIR");
    throw IoError("the folder for temporary files, TMPDIR (" + std::string(told ? told : "/tmp") +
                  "): " + error.message() + "; name one that is there");
  }
  std::string name = (parent / prefix).string() + ".XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw_errno("making a temporary directory " + name, errno);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace outrigger
