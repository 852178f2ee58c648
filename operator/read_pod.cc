#include "operator/read_pod.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "api/names.h"
#include "kube/json_fields.h"
#include "operator/names.h"

namespace outrigger::controller {
namespace {

using kube::at;
using kube::text_at;

bool true_at(const Json& object, std::string_view name) {
  const Json& value = at(object, name);
  return value.is_boolean() && value.get<bool>();
}

std::optional<api::Time> time_at(const Json& object, std::string_view name) {
  return api::parse_time(text_at(object, name));
}

std::optional<int> number_in(const std::string& text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

PodPhase phase_of(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, PodPhase>, 4> kPhases{
      {{"Pending", PodPhase::kPending},
       {"Running", PodPhase::kRunning},
       {"Succeeded", PodPhase::kSucceeded},
       {"Failed", PodPhase::kFailed}}};
  for (const auto& [phase, value] : kPhases) {
    if (name == phase) return value;
  }
  return name.empty() ? PodPhase::kPending : PodPhase::kUnknown;
}

// Waiting for the init containers or for the image is no trouble by itself.
bool is_trouble(const std::string& reason) {
  return !reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing";
}

void read_waiting(const Json& statuses, Pod& pod) {
  for (const Json& container : statuses) {
    const Json& waiting = at(at(container, "state"), "waiting");
    if (pod.waiting || !is_trouble(text_at(waiting, "reason"))) continue;
    pod.waiting = Why{text_at(waiting, "reason"), text_at(waiting, "message")};
  }
}

// Though all of its containers are ready it is not: its node does not answer, or one of its
// readiness gates is shut.
bool is_shut_off(const Pod& pod) {
  return pod.conditions.contains("ContainersReady") && !pod.conditions.contains("Ready");
}

// After the conditions.
void read_own_container(const Json& statuses, Pod& pod) {
  for (const Json& container : statuses) {
    if (text_at(container, "name") != role_name(pod.role)) continue;
    pod.image_id = text_at(container, "imageID");
    pod.ready = true_at(container, "ready") && !is_shut_off(pod);
    pod.started = time_at(at(at(container, "state"), "running"), "startedAt");
    const Json& ended = at(at(container, "state"), "terminated");
    if (!ended.is_object()) return;
    const Json& code = at(ended, "exitCode");
    pod.started = time_at(ended, "startedAt");
    pod.ended = Ended{code.is_number_integer() ? code.get<int>() : 1, text_at(ended, "reason"),
                      text_at(ended, "message"), time_at(ended, "finishedAt")};
    return;
  }
}

// The first init container that failed; ours has never run then.
std::optional<Why> failed_init(const Json& statuses) {
  for (const Json& container : statuses) {
    const Json& ended = at(at(container, "state"), "terminated");
    const Json& code = at(ended, "exitCode");
    if (!code.is_number_integer() || code.get<int>() == 0) continue;
    std::string message = "init container " + text_at(container, "name") +
                          " ended with exit code " + std::to_string(code.get<int>());
    for (const char* member : {"reason", "message"}) {
      const std::string text = text_at(ended, member);
      if (!text.empty() && text != "Error") message += ": " + text;
    }
    return Why{"InitContainerFailed", message};
  }
  return std::nullopt;
}

bool one_runs(const Json& statuses) {
  return std::any_of(statuses.begin(), statuses.end(), [](const Json& container) {
    return at(at(container, "state"), "running").is_object();
  });
}

void read_conditions(const Json& conditions, Pod& pod) {
  for (const Json& condition : conditions) {
    const std::string type = text_at(condition, "type");
    const std::string status = text_at(condition, "status");
    if (status == "True") pod.conditions.insert(type);
    if (type == "PodScheduled" && status == "False")
      pod.unscheduled = Why{text_at(condition, "reason"), text_at(condition, "message")};
  }
}

void read_status(const Json& status, Pod& pod) {
  pod.phase = phase_of(text_at(status, "phase"));
  pod.ip = text_at(status, "podIP");
  if (pod.role == api::Role::kServer) pod.taken = time_at(status, "startTime");
  const Why why{text_at(status, "reason"), text_at(status, "message")};
  if (!why.reason.empty() || !why.message.empty()) pod.ended_for = why;
  read_conditions(at(status, "conditions"), pod);
  read_waiting(at(status, "initContainerStatuses"), pod);
  read_waiting(at(status, "containerStatuses"), pod);
  read_own_container(at(status, "containerStatuses"), pod);
  if (pod.phase == PodPhase::kFailed && !pod.ended && !pod.ended_for) {
    if (auto failed = failed_init(at(status, "initContainerStatuses")))
      pod.ended_for = *std::move(failed);
  }
  pod.runs =
      one_runs(at(status, "initContainerStatuses")) || one_runs(at(status, "containerStatuses"));
}

std::string owner_uid(const Json& metadata) {
  for (const Json& owner : at(metadata, "ownerReferences")) {
    if (true_at(owner, "controller")) return text_at(owner, "uid");
  }
  return {};
}

}  // namespace

std::optional<Pod> read_pod(const Json& object) {
  const Json& metadata = at(object, "metadata");
  const Json& labels = at(metadata, "labels");
  const auto role = parse_role(text_at(labels, api::kRoleLabel));
  const auto index = number_in(text_at(labels, api::kIndexLabel));
  const auto attempt = number_in(text_at(labels, api::kAttemptLabel));
  Pod pod;
  pod.name = text_at(metadata, "name");
  const auto number = pod_number(pod.name);
  if (!role || !index || !attempt || !number) return std::nullopt;
  pod.uid = text_at(metadata, "uid");
  pod.job_uid = owner_uid(metadata);
  pod.role = *role;
  pod.index = *index;
  pod.attempt = *attempt;
  pod.number = *number;
  pod.failures = number_in(text_at(at(metadata, "annotations"), kFailuresAnnotation)).value_or(0);
  pod.created = time_at(metadata, "creationTimestamp");
  pod.deleting = time_at(metadata, "deletionTimestamp");
  pod.node = text_at(at(object, "spec"), "nodeName");
  read_status(at(object, "status"), pod);
  return pod;
}

NodeState read_node(const Json& object) {
  const Json& taints = at(at(object, "spec"), "taints");
  NodeState node;
  node.out_of_service = std::any_of(taints.begin(), taints.end(), [](const Json& taint) {
    return text_at(taint, "key") == "node.kubernetes.io/out-of-service";
  });
  return node;
}

}  // namespace outrigger::controller
