#pragma once

#include <vector>

#include "tests/integration/operator/board.h"

/// What the operator promises (docs/operations.md), a table each.
namespace outrigger::integration {

std::vector<Case> child_cases();        // what is made for a job, and whose it is
std::vector<Case> pod_cases();          // what its pods are like
std::vector<Case> lifecycle_cases();    // from the first pod to the last word
std::vector<Case> exit_code_cases();    // every code of a server and of a worker
std::vector<Case> rule_cases();         // failurePolicy
std::vector<Case> restart_cases();      // what counts, what is fenced, what waits
std::vector<Case> worker_cases();       // scaling, back-off, what costs a job only workers
std::vector<Case> suspend_cases();      // suspend and resume
std::vector<Case> deadline_cases();     // deadlines and their reasons
std::vector<Case> ending_cases();       // cleanPodPolicy, TTL, deletion
std::vector<Case> refusal_cases();      // what the API server or the operator refuses
std::vector<Case> quota_cases();        // quotas and limits of the namespace
std::vector<Case> edit_cases();         // what people and others change meanwhile
std::vector<Case> node_cases();         // dead nodes, drains
std::vector<Case> autoscaling_cases();  // what the server can use becomes what there is
std::vector<Case> external_cases();     // a server of the user's own

}  // namespace outrigger::integration
