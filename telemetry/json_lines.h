#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "common/file.h"

namespace outrigger::telemetry {

/// Appends JSON objects to a file, one a line (metrics.jsonl). A line is in the file, whole, when
/// append() returns; one cut short by a crash or a full disk is removed. A disk that is full never
/// ends a run: lines are dropped, the log says so once, and again when writing works. Where an
/// earlier attempt of the run lives on and writes, too, lines of both stay whole. Thread-safe.
class JsonLines {
 public:
  /// Opens or creates `path`, and its folder; continues behind the last whole line. Throws IoError.
  explicit JsonLines(const std::filesystem::path& path);

  /// `json` is one object without line breaks. False if it could not be written.
  bool append(std::string_view json);
  /// How many lines were dropped.
  int64_t dropped() const;

 private:
  /// Removes what was written of a line that could not be finished.
  void cut_last(size_t written);

  mutable std::mutex mutex_;
  const std::filesystem::path path_;
  FileDescriptor file_;
  bool torn_ = false;  // the file's last line is not whole, and was not this one's to remove
  int64_t dropped_ = 0;
  bool failing_ = false;
};

}  // namespace outrigger::telemetry
