#pragma once

#include <stop_token>

#include "api/exit_codes.h"
#include "api/launch.h"

namespace outrigger::gpu_server {

/// The server process: one replica of a job, from reading the job to its weights. Returns how it
/// ended; throws what main reports (api::exit_code_of). On a stop request it writes a checkpoint
/// first and returns kStopped.
api::ExitCode run_server(const api::Launch& launch, const std::stop_token& stop);

}  // namespace outrigger::gpu_server
