#include <set>

#include "operator/policy/pods.h"
#include "operator/policy/roles.h"

namespace outrigger::controller {

std::vector<std::string> nodes_wanted(const std::vector<Pod>& pods, api::Time now) {
  std::set<std::string> names;
  for (const Pod& pod : pods) {
    if (is_overdue(pod, now) && !pod.node.get().empty()) names.insert(pod.node);
  }
  return {names.begin(), names.end()};
}

void remove_from_dead_nodes(Pass& pass) {
  constexpr std::chrono::seconds kAskAgain{30};
  for (const Pod& pod : pass.seen.pods) {
    if (!pass.is_own(pod)) continue;
    if (!is_overdue(pod, pass.now)) {
      // Nothing else would look then; what waits for servers does.
      if (pod.deleting && pod.role == api::Role::kWorker)
        pass.again_at(*pod.deleting + kDeletionMargin + std::chrono::seconds(1));
      continue;
    }
    const auto node = pass.seen.nodes.find(pod.node);
    const bool known = node != pass.seen.nodes.end();
    const char* why = nullptr;
    if (known && !node->second.exists) why = "its node is gone";
    if (known && node->second.out_of_service) why = "its node is out of service";
    // Where it lives on it harms nobody: what it brings is no longer wanted.
    if (why == nullptr && pod.role == api::Role::kWorker) why = "its node does not answer";
    if (why == nullptr) {
      pass.again_at(pass.now + kAskAgain);
      continue;
    }
    pass.plan.actions.push_back(
        Remove{ObjectKind::kPod, pod.name, pod.uid, std::chrono::seconds(0), why});
  }
}

}  // namespace outrigger::controller
