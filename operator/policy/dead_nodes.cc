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
    if (!pass.is_own(pod) || !is_overdue(pod, pass.now)) continue;
    const auto node = pass.seen.nodes.find(pod.node);
    const bool dead =
        node != pass.seen.nodes.end() && (!node->second.exists || node->second.out_of_service);
    if (!dead) {
      pass.again_at(pass.now + kAskAgain);
      continue;
    }
    const std::string why = node->second.exists ? "its node is out of service" : "its node is gone";
    pass.plan.actions.push_back(
        Remove{ObjectKind::kPod, pod.name, pod.uid, std::chrono::seconds(0), why});
  }
}

}  // namespace outrigger::controller
