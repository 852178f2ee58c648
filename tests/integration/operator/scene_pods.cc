// What scheduler, kubelets and people do to the pods of a scene.
#include <utility>

#include "api/names.h"
#include "api/time.h"
#include "tests/integration/operator/scene.h"

namespace outrigger::integration {
namespace {

bool is_over(const Json& pod) {
  const std::string phase = pod.value("/status/phase"_json_pointer, "");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

std::string now_text() {
  return api::to_string(std::chrono::floor<seconds>(std::chrono::system_clock::now()));
}

Json container_status(const Json& pod, const Json& state, bool ready) {
  const std::string role = kube::label(pod, std::string(api::kRoleLabel)).value_or("");
  const std::string image = pod.at("/spec/containers/0/image"_json_pointer);
  return {{"name", role.empty() ? "main" : role},
          {"ready", ready},
          {"restartCount", 0},
          {"image", image},
          {"imageID", image + "@sha256:" + std::string(64, 'a')},
          {"state", state}};
}

void Scene::bind(const std::string& pod, const std::string& node) {
  const kube::Resource bindings{"", "v1", "bindings", "Binding"};
  auto bound = client_.create(
      bindings, {{"apiVersion", "v1"},
                 {"kind", "Binding"},
                 {"metadata", {{"name", pod}, {"namespace", ns_}}},
                 {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}});
  // As a scheduler: a pod that has been deleted meanwhile needs no node.
  if (!bound && bound.error().conflict()) return;
  (void)std::move(bound).take();
}

void Scene::patch_pod_status(const std::string& name, const Json& status) {
  (void)client_
      .patch(kPods, {ns_, name}, kube::PatchType::kMerge, {{"status", status}}, {}, "status")
      .take();
}

void Scene::run(const std::string& name, bool ready) {
  const Json object = pod(name);
  if (!object.at("spec").contains("nodeName")) bind(name);
  patch_pod_status(
      name,
      {{"phase", "Running"},
       {"podIP", "198.18.0.1"},
       {"podIPs", Json::array({{{"ip", "198.18.0.1"}}})},
       {"startTime", now_text()},
       {"conditions", Json::array({{{"type", "PodScheduled"}, {"status", "True"}},
                                   {{"type", "Ready"}, {"status", ready ? "True" : "False"}}})},
       {"containerStatuses", Json::array({container_status(
                                 object, {{"running", {{"startedAt", now_text()}}}}, ready)})}});
}

void Scene::run_all() {
  for (const Json& object : pods()) {
    const bool runs = object.value("/status/phase"_json_pointer, "") == "Running";
    if (!runs && !is_over(object) && !kube::is_deleting(object)) run(kube::name_of(object));
  }
}

void Scene::wait_in(const std::string& name, const std::string& reason,
                    const std::string& message) {
  const Json object = pod(name);
  if (!object.at("spec").contains("nodeName")) bind(name);
  const Json state{{"waiting", {{"reason", reason}, {"message", message}}}};
  patch_pod_status(name,
                   {{"phase", "Pending"},
                    {"containerStatuses", Json::array({container_status(object, state, false)})}});
}

void Scene::end(const std::string& name, const End& how) {
  const Json object = pod(name);
  const std::string started =
      object.value("/status/containerStatuses/0/state/running/startedAt"_json_pointer, now_text());
  const Json state{{"terminated",
                    {{"exitCode", how.code},
                     {"reason", how.code == 0 ? "Completed" : how.reason},
                     {"message", how.message},
                     {"startedAt", started},
                     {"finishedAt", now_text()}}}};
  Json conditions = object.value("/status/conditions"_json_pointer, Json::array());
  for (Json& one : conditions) {
    if (one["type"] == "Ready") one["status"] = "False";
  }
  patch_pod_status(name,
                   {{"phase", how.code == 0 ? "Succeeded" : "Failed"},
                    {"conditions", conditions},
                    {"containerStatuses", Json::array({container_status(object, state, false)})}});
}

void Scene::add_condition(const std::string& name, const std::string& type,
                          const std::string& reason) {
  Json conditions = pod(name).value("/status/conditions"_json_pointer, Json::array());
  conditions.push_back({{"type", type}, {"status", "True"}, {"reason", reason}});
  patch_pod_status(name, {{"conditions", conditions}});
}

void Scene::finish_deletions() {
  for (const Json& object : pods()) {
    if (kube::is_deleting(object)) vanish(kube::name_of(object));
  }
}

void Scene::remove(const std::string& name) { (void)client_.remove(kPods, {ns_, name}).take(); }

void Scene::vanish(const std::string& name) {
  const auto result = client_.remove(kPods, {ns_, name}, {.grace_period = seconds(0)});
  if (!result && !result.error().not_found()) throw kube::ApiError(result.error());
}

}  // namespace outrigger::integration
