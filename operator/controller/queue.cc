#include <string>

#include "common/log.h"
#include "kube/json_fields.h"
#include "kube/object/object.h"
#include "operator/controller/reconciler.h"
#include "operator/controller/resources.h"
#include "operator/objects/workload.h"
#include "operator/read_workload.h"

namespace outrigger::controller {
namespace {

using kube::at;

int value_of(const Json& priority_class) {
  const Json& value = at(priority_class, "value");
  return value.is_number_integer() ? value.get<int>() : 0;
}

}  // namespace

void Reconciler::look_at_queue(Observed& seen, const std::string& job_key, JobMemory& memory) {
  const auto& policy = seen.job.spec.scheduling_policy;
  const auto& metadata = seen.job.metadata;
  QueueState& queue = seen.queue;
  queue.known = caches_.knows_workloads(metadata.namespace_name);
  const auto dropped = memory.dropped();
  const auto cached = caches_.workload(job_key, metadata.uid);
  if (cached && !dropped.contains(cached->uid)) queue.workload = cached->value.workload;
  if (!policy || !policy->queue) return;
  const std::string child = child_name(ObjectKind::kWorkload, workload_name(metadata.name));
  const std::optional<int> shown = queue.workload ? std::optional(0) : std::nullopt;
  queue.asked = !queue.workload && memory.child(child, shown, SystemClock().now()).has_value();
  if (queue.workload) {
    ask_flavors(seen, memory);
  } else if (queue.known && !queue.asked && !seen.job.spec.suspend) {
    policy->priority_class_name ? ask_priority(seen) : ask_default_priority(seen);
  }
}

void Reconciler::ask_priority(Observed& seen) {
  const std::string& name = *seen.job.spec.scheduling_policy->priority_class_name;
  const auto found = client_.get(kPriorityClasses, {"", name});
  if (!found) {
    seen.queue.problem = "priority class " + name + ": " + found.error().message();
    return;
  }
  seen.queue.priority = PriorityClass{name, value_of(*found)};
}

// Of several the least counts, as for pods.
void Reconciler::ask_default_priority(Observed& seen) {
  const auto classes = client_.list(kPriorityClasses);
  if (!classes) {  // in one namespace the operator has no right to them
    log::warning("{}/{} queues without the cluster's default priority: {}",
                 seen.job.metadata.namespace_name, seen.job.metadata.name, classes.error().what());
    return;
  }
  for (const Json& one : *classes) {
    const Json& is_default = at(one, "globalDefault");
    if (!is_default.is_boolean() || !is_default.get<bool>()) continue;
    auto& least = seen.queue.priority;
    if (!least || value_of(one) < least->value)
      least = PriorityClass{kube::name_of(one), value_of(one)};
  }
}

void Reconciler::ask_flavors(Observed& seen, JobMemory& memory) {
  bool admitted = false;
  for (const auto& [role, pods] : seen.queue.workload->pod_sets) {
    for (const std::string& name : pods.flavors) {
      admitted = true;
      auto flavor = memory.flavor(name);
      if (!flavor) {
        // A list, whose fields are all built: of single objects this client drops tolerations.
        const auto found = client_.list(kResourceFlavors, {.fields = "metadata.name=" + name});
        if (!found || found->empty()) {
          seen.queue.problem = "resource flavor " + name + ": " +
                               (found ? "there is none" : found.error().message());
          continue;
        }
        flavor = read_flavor(found->front());
        memory.read_flavor(name, *flavor);
      }
      seen.queue.flavors[name] = *flavor;
    }
  }
  if (!admitted) memory.forget_flavors();
}

}  // namespace outrigger::controller
