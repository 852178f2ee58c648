#pragma once

#include <string>

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Where the job's results are, once it has begun.
void tell_output(Pass& pass);

/// The folder that checkpoints are written to, in which each job has its own.
const std::string& checkpoint_folder(const Pass& pass);

/// The attempt that begins does not find a checkpoint that went with a server's pod.
void forget_lost_checkpoint(Pass& pass);

/// What the first server's page said goes into the status: at once where a percent, an epoch, the
/// plan or a checkpoint is new, else every half minute, so that steps do not flood the API server.
void take_report(Pass& pass);

/// What the first server told when it ended, which is later than what its page said; false where it
/// told nothing.
bool take_last_words(Pass& pass);

}  // namespace outrigger::controller
