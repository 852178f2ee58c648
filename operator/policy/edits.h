#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/observed.h"
#include "operator/options.h"
#include "operator/read_job.h"

namespace outrigger::controller {

/// What a server that runs is told of its job, which it read when its attempt began.
struct Edit {
  std::string ip;     // the first server's
  std::string token;  // of control
  std::string body;   // {"generation": …, "job": …}
};

/// Whether the server that reports knows an older job than this one, and can be told.
bool is_behind(const ServerReport& report, const api::TrainingJob& job);

/// What the first server of the present attempt is told of the job; nothing where it is not to be
/// told: nothing of ours runs, the job ends or is suspended, or its spec cannot be run.
std::optional<Edit> edit_for(const JobRecord& record, const std::vector<Pod>& pods,
                             const Options& options);

}  // namespace outrigger::controller
