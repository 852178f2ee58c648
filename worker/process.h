#pragma once

#include <stop_token>

#include "api/exit_codes.h"
#include "api/launch.h"

namespace outrigger::worker {

/// The worker process: joins the server of `launch`, works, and joins again for ever with back-off
/// when the link is lost. Returns when the server says that the work is over, or when asked to
/// stop. Throws what main reports, JoinRefused after a few refusals in a row among it.
api::ExitCode run_worker(const api::Launch& launch, const std::stop_token& stop);

}  // namespace outrigger::worker
