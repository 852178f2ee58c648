#pragma once

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// A new life of the servers: its number, and that none of its pods has been seen yet. Its pods are
/// made in later passes.
void begin_attempt(Pass& pass);

/// Whether pods of the current attempt may still have to be made for the first time; afterwards one
/// that is missing was deleted.
bool is_creating(const api::TrainingJobStatus& status);

/// Whether all servers of the attempt were ready at some time.
bool has_run(const api::TrainingJobStatus& status);

/// Whether servers were put out of their places, by a drain or by a job of a higher priority, and
/// have not run since. No longer once an attempt had all its places and failed there, uncounted.
bool was_put_out(const api::TrainingJobStatus& status);

/// Looks for servers that failed, were disrupted or vanished, and for workers that a rule names:
/// the job restarts or fails, into the status. True: it did one or the other.
///
/// All ranks restart together, once for all that failed together. What told its cause wins over the
/// ranks that only noticed (PeerLost); for a moment those are not believed alone.
bool restart(Pass& pass);

}  // namespace outrigger::controller
