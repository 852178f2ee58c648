#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/error.h"

namespace outrigger::api {

/// How a process of ours ended: its exit status. The contract between processes, launchers and the
/// operator; the numbers never change. Below 126, where shells begin.
enum class ExitCode : int {
  kDone = 0,
  kInternalError = 1,
  kBadUsage = 2,
  kInvalidSpec = 10,
  kNotSupported = 11,
  kBadData = 12,
  kNumericalError = 13,
  kOutOfMemory = 14,
  kJoinRefused = 15,
  kStaleAttempt = 16,
  kStopped = 20,
  kHung = 21,
  kIoFailure = 22,
  kPeerLost = 23,
  kNoDevice = 24,
};

/// One row of the table.
struct ExitCodeInfo {
  ExitCode code;
  std::string_view name;  // "NumericalError": the reason in conditions and in lastFailure
  bool retryable;         // starting the process again may help
  bool counted;           // such a restart counts against failurePolicy.maxRestarts
  std::string_view text;  // one sentence for people
};

/// Every code once, by number. Static; valid for ever.
std::span<const ExitCodeInfo> exit_code_table();
const ExitCodeInfo& info(ExitCode code);
/// The row of an exit status; nothing for one that is not ours (a signal's 137, say).
std::optional<ExitCodeInfo> find_exit_code(int exit_status);

/// Ends the process with `code` when it reaches main; the text says what was tried and what came
/// back.
class Failure : public Error {
 public:
  Failure(ExitCode code, const std::string& what) : Error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// What main returns for an exception: a Failure's own code, InvalidInput is kInvalidSpec, IoError
/// and filesystem_error kIoFailure, std::bad_alloc kOutOfMemory, Cancelled kStopped, anything else
/// kInternalError.
ExitCode exit_code_of(const std::exception& error);

}  // namespace outrigger::api
