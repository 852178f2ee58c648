#include "operator/read_workload.h"

#include <algorithm>
#include <string>

#include "operator/names.h"

namespace outrigger::controller {
namespace {

const Json& part(const Json& object, std::string_view name) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string word(const Json& object, std::string_view name) {
  const Json& value = part(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

int count_of(const Json& object, int otherwise) {
  const Json& value = part(object, "count");
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
    const auto role = parse_role(word(one, "name"));
    const auto found = role ? workload.pod_sets.find(*role) : workload.pod_sets.end();
    if (found != workload.pod_sets.end()) take(one, found->second);
  }
}

void read_assignment(const Json& one, PodSet& pods) {
  pods.admitted = count_of(one, pods.wanted);
  pods.topology = part(one, "topologyAssignment").is_object() ||
                  part(one, "delayedTopologyRequest").is_string();
  for (const auto& [resource, flavor] : words(part(one, "flavors"))) {
    if (std::find(pods.flavors.begin(), pods.flavors.end(), flavor) == pods.flavors.end())
      pods.flavors.push_back(flavor);
  }
}

Placement read_update(const Json& update) {
  return {words(part(update, "nodeSelector")), words(part(update, "labels")),
          words(part(update, "annotations")), elements(part(update, "tolerations"))};
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
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  const Json& status = part(object, "status");
  Workload workload{word(metadata, "name"), word(metadata, "uid"),
                    word(metadata, "resourceVersion"), word(spec, "queueName")};
  for (const Json& one : elements(part(spec, "podSets"))) {
    if (const auto role = parse_role(word(one, "name")))
      workload.pod_sets[*role].wanted = count_of(one, 1);
  }
  each_pod_set(workload, part(part(status, "admission"), "podSetAssignments"), read_assignment);
  each_pod_set(workload, part(status, "reclaimablePods"),
               [](const Json& one, PodSet& pods) { pods.reclaimed = count_of(one, 0); });
  for (const Json& check : elements(part(status, "admissionChecks"))) {
    each_pod_set(workload, part(check, "podSetUpdates"),
                 [](const Json& one, PodSet& pods) { pods.added.merge(read_update(one)); });
  }
  workload.conditions = elements(part(status, "conditions"));
  return workload;
}

Placement read_flavor(const Json& object) {
  const Json& spec = part(object, "spec");
  return {words(part(spec, "nodeLabels")), {}, {}, elements(part(spec, "tolerations"))};
}

}  // namespace outrigger::controller
