#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "common/file.h"

namespace outrigger {

/// A file that one holder at a time has, of all processes, until this goes out of scope or the
/// process ends, however it ends. The file itself stays: whoever removed it would let two in.
class FileLock {
 public:
  /// Makes the file where absent. Nothing where somebody else has it. Where the file system knows
  /// no locks, everybody gets it. Throws IoError.
  static std::optional<FileLock> take(const std::filesystem::path& file);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace outrigger
