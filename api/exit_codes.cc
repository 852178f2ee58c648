#include "api/exit_codes.h"

#include <array>
#include <filesystem>
#include <new>

namespace outrigger::api {
namespace {

constexpr std::array kTable{
    ExitCodeInfo{ExitCode::kDone, "Done", false, false, "The work is done."},
    ExitCodeInfo{ExitCode::kInternalError, "InternalError", true, true,
                 "The program failed in a way it does not expect; the log has the text."},
    ExitCodeInfo{ExitCode::kBadUsage, "BadUsage", false, true,
                 "A flag or an environment variable is wrong."},
    ExitCodeInfo{ExitCode::kInvalidSpec, "InvalidSpec", false, true,
                 "The job, or a file that it names, is not valid."},
    ExitCodeInfo{ExitCode::kNotSupported, "NotSupported", false, true,
                 "The job asks for something that this build cannot do yet."},
    ExitCodeInfo{
        ExitCode::kBadData, "BadData", false, true,
        "The data set is missing or unusable, or more samples are broken than data.maxBadFraction "
        "allows."},
    ExitCodeInfo{ExitCode::kNumericalError, "NumericalError", false, true,
                 "The loss or a gradient is not a number; the last good checkpoint is kept."},
    ExitCodeInfo{ExitCode::kOutOfMemory, "OutOfMemory", false, true,
                 "The memory of this process or of its device does not hold the job."},
    ExitCodeInfo{ExitCode::kJoinRefused, "JoinRefused", false, true,
                 "The server does not take this worker: its token, version or data differ."},
    ExitCodeInfo{ExitCode::kStaleAttempt, "StaleAttempt", false, false,
                 "A later attempt of the job owns the checkpoints; this one has ended."},
    ExitCodeInfo{ExitCode::kStopped, "Stopped", true, false,
                 "Asked to stop; a checkpoint is written."},
    ExitCodeInfo{
        ExitCode::kHung, "Hung", true, true,
        "No progress within progressDeadlineSeconds; the process's own watchdog ended it."},
    ExitCodeInfo{ExitCode::kIoFailure, "IoFailure", true, true,
                 "A disk, a file or the network failed."},
    ExitCodeInfo{ExitCode::kPeerLost, "PeerLost", true, true,
                 "Another rank of the job went away; all ranks start again from the checkpoint."},
    ExitCodeInfo{ExitCode::kNoDevice, "NoDevice", true, true,
                 "The device that the job asks for is not there or does not work."},
};

}  // namespace

std::span<const ExitCodeInfo> exit_code_table() { return kTable; }

const ExitCodeInfo& info(ExitCode code) {
  for (const auto& row : kTable) {
    if (row.code == code) return row;
  }
  impossible("an exit code without a row in the table");
}

std::optional<ExitCodeInfo> find_exit_code(int exit_status) {
  for (const auto& row : kTable) {
    if (static_cast<int>(row.code) == exit_status) return row;
  }
  return std::nullopt;
}

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) return failure->code();
  if (dynamic_cast<const InvalidInput*>(&error) != nullptr) return ExitCode::kInvalidSpec;
  if (dynamic_cast<const IoError*>(&error) != nullptr ||
      dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr) {
    return ExitCode::kIoFailure;
  }
  if (dynamic_cast<const Cancelled*>(&error) != nullptr) return ExitCode::kStopped;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return ExitCode::kOutOfMemory;
  return ExitCode::kInternalError;
}

}  // namespace outrigger::api
