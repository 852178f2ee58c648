#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "operator/policy/pass.h"

/// What a pod's state means, asked by many policies.
namespace outrigger::controller {

/// How long after the end of its grace a pod may still be there before its node counts as dead.
inline constexpr std::chrono::seconds kDeletionMargin{30};

/// Our container has ended, or never will begin.
bool is_over(const Pod& pod);
/// Over, and all is well; whatever sidecars do.
bool is_done(const Pod& pod);
/// Whether a server has done its work. One of the user's own may end with 0 when it is asked to
/// stop, so of one that was deleted or disrupted that says nothing.
bool has_done_its_work(const Pass& pass, const Pod& server);
inline bool is_failed(const Pod& pod) { return is_over(pod) && !is_done(pod); }
/// When it ended. Where it does not tell, as one that its node refused, when it was made; what a
/// dead node left has only now ended.
api::Time ended_at(const Pod& pod, api::Time now);
/// Was to be gone by now: nobody on its node answers.
bool is_overdue(const Pod& pod, api::Time now);
/// Neither over nor asked to end.
inline bool is_living(const Pod& pod) { return !is_over(pod) && !pod.deleting; }
/// None of its containers runs any more, sidecars included: it holds nothing but its logs.
bool is_at_rest(const Pod& pod);
/// Ended by the cluster (drain, preemption, spot, eviction), not by itself.
bool is_disrupted(const Pod& pod);

/// The pod of the first server whose container runs, which can tell how far it is; null: none.
const Pod* running_first_server(const std::vector<Pod>& pods, const std::string& job_uid);

/// The job's own pods of a role, by index and number.
std::vector<const Pod*> own_pods(const Pass& pass, api::Role role);
/// Own servers of the attempt that the status names.
std::vector<const Pod*> current_servers(const Pass& pass);
/// One more than the highest number of that role and index, leftovers of a former job included.
int next_number(const Pass& pass, api::Role role, int index);

}  // namespace outrigger::controller
