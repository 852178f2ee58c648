#include "tests/integration/operator/scene.h"

#include <algorithm>
#include <thread>

#include "api/names.h"
#include "kube/control/events.h"

namespace outrigger::integration {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

std::string role_of(const Json& pod) {
  return kube::label(pod, std::string(api::kRoleLabel)).value_or("");
}

}  // namespace

const kube::Resource kJobs{"outrigger.dev", "v1alpha1", "trainingjobs", "TrainingJob"};
const kube::Resource kPods{"", "v1", "pods", "Pod"};
const kube::Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
const kube::Resource kNodes{"", "v1", "nodes", "Node", false};
const kube::Resource kServices{"", "v1", "services", "Service"};
const kube::Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
const kube::Resource kSecrets{"", "v1", "secrets", "Secret"};
const kube::Resource kPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};

void make_namespace(kube::Client& client, const std::string& ns, const Json& labels) {
  (void)client
      .create(kNamespaces, {{"apiVersion", "v1"},
                            {"kind", "Namespace"},
                            {"metadata", {{"name", ns}, {"labels", labels}}}})
      .take();
  const kube::Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount"};
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (!client.get(accounts, {ns, "default"})) {
    if (std::chrono::steady_clock::now() > deadline)
      throw CaseFailed("the namespace " + ns + " got no service account");
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Scene::Scene(kube::Client& client, const std::string& ns, const Json& ns_labels)
    : client_(client), ns_(ns) {
  make_namespace(client_, ns_, ns_labels);
}

Json Scene::sample(const Json& more) const {
  Json spec{
      {"model", {{"name", "lenet5"}}},
      {"data", {{"train", {{"path", "/data/faces"}}}, {"image", {{"height", 28}, {"width", 28}}}}},
      {"training",
       {{"epochs", 3}, {"batchSize", 96}, {"schedule", {{"constant", {{"base", 0.1}}}}}}},
      {"split", {{"cut", "Input"}}},
      {"workers", {{"replicas", 2}}},
      {"output", {{"path", "/runs"}}}};
  spec.merge_patch(more);
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kKind},
          {"metadata", {{"name", name_}, {"namespace", ns_}}},
          {"spec", std::move(spec)}};
}

Json Scene::create(const Json& job) {
  name_ = kube::name_of(job);
  return client_.create(kJobs, job).take();
}

void Scene::start(const Json& more) {
  const Json made = create(sample(more));
  const int servers = made.at("/spec/server/replicas"_json_pointer);
  const int workers = made.at("/spec/workers/replicas"_json_pointer);
  until("all pods of the job exist", [&] {
    return names("server").size() == static_cast<size_t>(servers) &&
           names("worker").size() == static_cast<size_t>(workers);
  });
  // A first pass makes the pods before it writes the status.
  until("the job's beginning is told", [&] { return !at("/startTime").is_null(); });
}

void Scene::start_and_run(const Json& more) {
  start(more);
  run_all();
  until_condition("Running", "True/ServersReady");
}

void Scene::change(const Json& patch) {
  const auto result = client_.patch(kJobs, {ns_, name_}, kube::PatchType::kMerge, patch);
  if (!result) fail(std::string("the job cannot be changed: ") + result.error().what(), 0);
}

std::string Scene::refused_change(const Json& patch) {
  const auto result = client_.patch(kJobs, {ns_, name_}, kube::PatchType::kMerge, patch);
  if (result) fail("the API server takes " + patch.dump(), 0);
  return result.error().message();
}

Json Scene::job() { return get(kJobs, name_); }

Json Scene::at(const std::string& pointer) {
  const Json now = status();
  const Json::json_pointer where(pointer);
  return now.contains(where) ? now.at(where) : Json();
}

std::string Scene::condition(const std::string& type) {
  for (const Json& one : status().value("conditions", Json::array())) {
    if (one.at("type") == type)
      return one.at("status").get<std::string>() + "/" + one.at("reason").get<std::string>();
  }
  return {};
}

std::string Scene::message(const std::string& type) {
  for (const Json& one : status().value("conditions", Json::array())) {
    if (one.at("type") == type) return one.at("message");
  }
  return {};
}

std::vector<std::string> Scene::events(const std::string& reason) {
  std::vector<std::string> notes;
  for (const Json& event : client_.list(kube::kEvents, {.ns = ns_}).take()) {
    if (event.value("reason", "") == reason) notes.push_back(event.value("note", ""));
  }
  return notes;
}

std::vector<Json> Scene::pods(const std::string& role) {
  std::vector<Json> all = client_.list(kPods, {.ns = ns_}).take();
  if (!role.empty()) std::erase_if(all, [&](const Json& pod) { return role_of(pod) != role; });
  return all;
}

std::vector<std::string> Scene::names(const std::string& role) {
  std::vector<std::string> names;
  for (const Json& pod : pods(role)) names.push_back(kube::name_of(pod));
  return names;
}

Json Scene::get(const kube::Resource& resource, const std::string& name) {
  return client_.get(resource, {resource.namespaced ? ns_ : "", name}).take();
}

Json Scene::find(const kube::Resource& resource, const std::string& name) {
  auto result = client_.get(resource, {resource.namespaced ? ns_ : "", name});
  return result ? std::move(result).take() : Json();
}

std::string Scene::server_of(int attempt, int index) {
  for (const Json& one : pods("server")) {
    if (kube::label(one, std::string(api::kAttemptLabel)) == std::to_string(attempt) &&
        kube::label(one, std::string(api::kIndexLabel)) == std::to_string(index))
      return kube::name_of(one);
  }
  return {};
}

std::string Scene::until_server_of(int attempt, seconds patience, int line) {
  std::string found;
  until(
      "a server of attempt " + std::to_string(attempt),
      [&] { return !(found = server_of(attempt)).empty(); }, patience, line);
  return found;
}

void Scene::until(const std::string& what, const std::function<bool()>& holds, seconds patience,
                  int line) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) fail("never: " + what, line);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Scene::stays(const std::string& what, const std::function<bool()>& holds, seconds time,
                  int line) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (!holds()) fail("no longer: " + what, line);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Scene::until_condition(const std::string& type, const std::string& status_and_reason,
                            int line) {
  until(
      "condition " + type + " is " + status_and_reason,
      [&] { return condition(type) == status_and_reason; }, seconds(60), line);
}

void Scene::until_pods(const std::vector<std::string>& wanted, int line) {
  until(
      "the pods are " + Json(wanted).dump(), [&] { return names() == wanted; }, seconds(60), line);
}

void Scene::expect(bool holds, const std::string& what, int line) {
  if (!holds) fail(what, line);
}

std::string Scene::picture() {
  std::string text;
  try {
    const Json object = find(kJobs, name_);
    text += "status: " + object.value("status", Json()).dump() + "\n";
    for (const Json& one : pods()) {
      text += kube::name_of(one) + (kube::is_deleting(one) ? " (to end)" : "") + ": " +
              one.value("status", Json()).dump().substr(0, 300) + "\n";
    }
  } catch (const std::exception& error) {
    text += std::string("no picture: ") + error.what();
  }
  return text;
}

void Scene::fail(const std::string& what, int line) {
  throw CaseFailed("line " + std::to_string(line) + ": " + what + "\n" + picture());
}

}  // namespace outrigger::integration
