#pragma once

#include <vector>

#include "api/field_error.h"
#include "operator/policy/conditions.h"
#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Refuses what cannot be run: a spec that is not valid, a field that is not built yet, an object
/// of our name that is not ours, a pod that the API server will never take. True: the pass ends
/// here, and a job that had not begun has failed. One that was suspended waits for an edit
/// (hold_of). One that runs is not ended for its spec, which
/// another version of the operator took: it is Degraded, and goes on with the spec as it is and
/// without what is not built; where more could not be read than what servers alone ask for, its
/// pods are left alone. Nor is it ended for what is refused but for servers.
bool refuse(Pass& pass);

/// Why the spec cannot be run, or gone on with; nothing: it can.
std::optional<ConditionText> refusal_of_spec(const Pass& pass);

/// The fields that ask for what is not built yet.
std::vector<api::FieldError> not_supported(const Pass& pass);

/// Begins a job that has not begun yet and was never held, as far as its status says: time, attempt
/// and images. The rest of the pass goes on from there.
void begin_first(Pass& pass);

/// Whether objects of the first attempt are there, by a pass whose status was not written.
bool has_begun_untold(const Pass& pass);

/// Tells of fields of spec that the attempt that begins is not told.
void warn_of_unknown_fields(Pass& pass);

/// Lets a job go on that was suspended or waited in a queue: time, attempt and images go into the
/// status, before the first pod is made. True: it did.
bool resume(Pass& pass);

/// Why the job is to have no pods now: its user suspended it, its queue has not admitted it, it was
/// suspended as a spec that cannot be run, or it was resumed before all its pods had ended.
/// Nothing: it may have them.
std::optional<ConditionText> hold_of(const Pass& pass);

/// Ends all pods, servers before workers, and says so once they are gone; `why` is what keeps the
/// job from having any.
void suspend(Pass& pass, const ConditionText& why);

/// What kept the job from having pods was taken back before all of them were gone, and those that
/// are left are on nodes that do not answer.
void stop_suspending(Pass& pass);

/// Lets spec.workers.replicas follow what the server can use, where the job asks for that: looks
/// whether somebody else wrote the number, and decides for a new one. A decision goes into the
/// status first (true: this pass ends here) and is written by the next pass, so that no crash makes
/// our own write look like somebody else's.
bool autoscale(Pass& pass);

/// Fails a job that runs too long, or whose servers cannot be started at all or in time. True: it
/// did.
bool fail_by_deadline(Pass& pass);

}  // namespace outrigger::controller
