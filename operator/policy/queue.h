#pragma once

#include <optional>

#include "operator/policy/conditions.h"
#include "operator/policy/pass.h"

/// Waiting in a queue of Kueue: a Workload that the job owns stands for it there, and the job has
/// pods only while that is admitted.
namespace outrigger::controller {

/// Reason of Suspended while a job waits in its queue.
inline constexpr std::string_view kQueued = "Queued";

/// Whether the job names a queue.
bool has_queue(const Pass& pass);

/// Why the job's queue keeps it from having pods; nothing: it does not.
std::optional<ConditionText> hold_of_queue(const Pass& pass);

/// Whether nothing can be said about a job that has started, so that it stays as it is: Workloads
/// are not in the cache yet.
bool is_place_unknown(const Pass& pass);

/// Makes the Workload, brings it up to date, gives back what is no longer needed, or all of it once
/// the last pod of an evicted or suspended job is gone.
void keep_place(Pass& pass);

/// A finished job: its Workload is finished once no pod runs, so that others get its quota.
void give_up_place(Pass& pass);

/// How many workers the job may have now: what its spec says, within what its queue admitted.
int allowed_workers(const Pass& pass);
/// The most that it may have without a new admission; nothing where no queue says so.
std::optional<int> admitted_workers(const Pass& pass);

/// What the admission says of pods of that role; nothing without a queue.
Placement placement_of(const Pass& pass, api::Role role);

}  // namespace outrigger::controller
