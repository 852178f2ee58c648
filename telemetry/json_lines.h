#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "common/file.h"

namespace outrigger::telemetry {

/// Appends JSON objects to a file, one a line (metrics.jsonl). A line is in the file, whole, when
/// append() returns; one cut short by a crash or a full disk is removed. A disk that is full never
/// ends a run: lines are dropped, the log says so once, and again when writing works. Thread-safe.
class JsonLines {
 public:
  /// Opens or creates `path`, and its folder; continues behind the last whole line. Throws IoError.
  explicit JsonLines(const std::filesystem::path& path);

  /// `json` is one object without line breaks. False if it could not be written.
  bool append(std::string_view json);
  /// How many lines were dropped.
  int64_t dropped() const;

 private:
  mutable std::mutex mutex_;
  const std::filesystem::path path_;
  FileDescriptor file_;
  int64_t size_ = 0;  // bytes up to the end of the last whole line
  int64_t dropped_ = 0;
  bool failing_ = false;
};

}  // namespace outrigger::telemetry
