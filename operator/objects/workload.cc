#include "operator/objects/workload.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/names.h"
#include "api/time.h"
#include "operator/names.h"
#include "operator/objects/merge.h"
#include "operator/objects/metadata.h"
#include "operator/objects/pod.h"

namespace outrigger::controller {
namespace {

// What the schema of conditions allows.
constexpr size_t kLongestText = 32768;

// What a pod's template may ask of racks and hosts, by annotation (kueue.sigs.k8s.io, "Topology
// Aware Scheduling").
constexpr std::array kTopologyWishes{"required", "preferred"};

std::string wish(const char* word) {
  return "kueue.x-k8s.io/podset-" + std::string(word) + "-topology";
}

// Of the pod's metadata a pod set may have labels and annotations only.
Json pod_set(const api::TrainingJob& job, const Options& options, api::Role role, int count) {
  PodOrder order;
  order.place.role = role;
  order.image = wanted_image(job, role, options);
  Json pod = build_pod(job, order, options);
  Json metadata{{"labels", pod["metadata"]["labels"]},
                {"annotations", pod["metadata"]["annotations"]}};
  Json set{{"name", role_name(role)}, {"count", count}};
  for (const char* word : kTopologyWishes) {
    const auto level = metadata["annotations"].find(wish(word));
    if (level != metadata["annotations"].end()) set["topologyRequest"][word] = *level;
  }
  set["template"] = {{"metadata", std::move(metadata)}, {"spec", std::move(pod["spec"])}};
  return set;
}

// As Kueue's own controllers make such pods; its ungater looks for all of it.
void leave_to_kueue(Json& pod, const std::string& workload) {
  add_named(list_at(pod["spec"], "schedulingGates"), {{"name", "kueue.x-k8s.io/topology"}});
  Json& annotations = pod["metadata"]["annotations"];
  annotations["kueue.x-k8s.io/workload"] = workload;
  const bool wishes = std::ranges::any_of(
      kTopologyWishes, [&](const char* word) { return annotations.contains(wish(word)); });
  if (!wishes) annotations[wish("unconstrained")] = "true";
}

}  // namespace

std::string workload_name(const std::string& job) { return "trainingjob-" + job; }

int workers_to_ask_for(const api::WorkersSpec& workers) {
  if (!workers.autoscaling) return workers.replicas;
  return std::max(workers.replicas, workers.max_replicas.value_or(workers.replicas));
}

Json build_pod_sets(const api::TrainingJob& job, const Options& options) {
  Json sets = Json::array({pod_set(job, options, api::Role::kServer, job.spec.server.replicas)});
  if (const int workers = workers_to_ask_for(job.spec.workers); workers > 0)
    sets.push_back(pod_set(job, options, api::Role::kWorker, workers));
  return sets;
}

Json build_workload(const api::TrainingJob& job, const Options& options,
                    const std::optional<PriorityClass>& priority) {
  const auto& policy = *job.spec.scheduling_policy;
  Json spec{{"queueName", *policy.queue}, {"podSets", build_pod_sets(job, options)}};
  if (priority) {
    spec["priorityClassName"] = priority->name;
    spec["priorityClassSource"] = "scheduling.k8s.io/priorityclass";
    spec["priority"] = priority->value;
  }
  Json metadata = child_metadata(job, workload_name(job.metadata.name));
  metadata["labels"]["kueue.x-k8s.io/job-uid"] = job.metadata.uid;
  return {{"apiVersion", "kueue.x-k8s.io/v1beta1"},
          {"kind", "Workload"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

void place_pod(Json& pod, const Placement& placement) {
  Json& spec = object_at(pod, "spec");
  for (const auto& [key, value] : placement.node_selector)
    object_at(spec, "nodeSelector")[key] = value;
  for (const auto& [key, value] : placement.labels) fill(pod["metadata"]["labels"], {{key, value}});
  for (const auto& [key, value] : placement.annotations)
    fill(pod["metadata"]["annotations"], {{key, value}});
  if (!placement.placed_by.empty()) leave_to_kueue(pod, placement.placed_by);
  if (placement.tolerations.empty()) return;
  Json& tolerations = list_at(spec, "tolerations");
  for (const Json& one : placement.tolerations) {
    if (std::find(tolerations.begin(), tolerations.end(), one) == tolerations.end())
      tolerations.push_back(one);
  }
}

Json with_condition(Json conditions, const WorkloadCondition& condition, api::Time now) {
  Json set{{"type", condition.type},
           {"status", condition.holds ? "True" : "False"},
           {"reason", condition.reason},
           {"message", condition.message.substr(0, kLongestText)},
           {"lastTransitionTime", api::to_string(now)}};
  for (Json& one : conditions) {
    if (one.value("type", "") != condition.type) continue;
    if (one["status"] == set["status"] && one.contains("lastTransitionTime"))
      set["lastTransitionTime"] = one["lastTransitionTime"];
    one = std::move(set);
    return conditions;
  }
  conditions.push_back(std::move(set));
  return conditions;
}

}  // namespace outrigger::controller
