#include "operator/read_workload.h"

#include <algorithm>
#include <string>

#include "kube/json_fields.h"
#include "operator/names.h"

namespace outrigger::controller {
namespace {

using kube::at;
using kube::text_at;

int count_of(const Json& object, int otherwise) {
  const Json& value = at(object, "count");
  return value.is_number_integer() ? value.get<int>() : otherwise;
}

std::map<std::string, std::string> words(const Json& object) {
  std::map<std::string, std::string> all;
  if (!object.is_object()) return all;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) all[name] = value.get<std::string>();
  }
  return all;
}

Json elements(const Json& value) { return value.is_array() ? value : Json::array(); }

// Calls `take` with each element of a list and our pod set of that name.
template <typename Take>
void each_pod_set(Workload& workload, const Json& list, const Take& take) {
  if (!list.is_array()) return;
  for (const Json& one : list) {
    const auto role = parse_role(text_at(one, "name"));
    const auto found = role ? workload.pod_sets.find(*role) : workload.pod_sets.end();
    if (found != workload.pod_sets.end()) take(one, found->second);
  }
}

void read_assignment(const Json& one, PodSet& pods) {
  pods.admitted = count_of(one, pods.wanted);
  pods.topology = at(one, "topologyAssignment").is_object();
  for (const auto& [resource, flavor] : words(at(one, "flavors"))) {
    if (std::find(pods.flavors.begin(), pods.flavors.end(), flavor) == pods.flavors.end())
      pods.flavors.push_back(flavor);
  }
}

Placement read_update(const Json& update) {
  return {words(at(update, "nodeSelector")), words(at(update, "labels")),
          words(at(update, "annotations")), elements(at(update, "tolerations"))};
}

}  // namespace

void Placement::merge(const Placement& more) {
  node_selector.insert(more.node_selector.begin(), more.node_selector.end());
  labels.insert(more.labels.begin(), more.labels.end());
  annotations.insert(more.annotations.begin(), more.annotations.end());
  for (const Json& one : more.tolerations) {
    if (std::find(tolerations.begin(), tolerations.end(), one) == tolerations.end())
      tolerations.push_back(one);
  }
}

Workload read_workload(const Json& object) {
  const Json& metadata = at(object, "metadata");
  const Json& spec = at(object, "spec");
  const Json& status = at(object, "status");
  Workload workload{text_at(metadata, "name"), text_at(metadata, "uid"),
                    text_at(metadata, "resourceVersion"), text_at(spec, "queueName")};
  const Json& active = at(spec, "active");
  workload.active = !active.is_boolean() || active.get<bool>();
  for (const Json& one : elements(at(spec, "podSets"))) {
    if (const auto role = parse_role(text_at(one, "name")))
      workload.pod_sets[*role].wanted = count_of(one, 1);
  }
  each_pod_set(workload, at(at(status, "admission"), "podSetAssignments"), read_assignment);
  each_pod_set(workload, at(status, "reclaimablePods"),
               [](const Json& one, PodSet& pods) { pods.reclaimed = count_of(one, 0); });
  for (const Json& check : elements(at(status, "admissionChecks"))) {
    workload.checks.push_back(
        {text_at(check, "name"), text_at(check, "state"), text_at(check, "message")});
    each_pod_set(workload, at(check, "podSetUpdates"),
                 [](const Json& one, PodSet& pods) { pods.added.merge(read_update(one)); });
  }
  workload.conditions = elements(at(status, "conditions"));
  return workload;
}

Placement read_flavor(const Json& object) {
  const Json& spec = at(object, "spec");
  return {words(at(spec, "nodeLabels")), {}, {}, elements(at(spec, "tolerations"))};
}

}  // namespace outrigger::controller
