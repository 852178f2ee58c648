#include "tests/unit/operator/world.h"

#include <variant>

#include "api/names.h"
#include "common/error.h"
#include "operator/names.h"
#include "operator/read_pod.h"
#include "operator/read_workload.h"
#include "tests/unit/api/sample_job.h"

namespace outrigger::controller {
namespace {

const Json kNoConditions = Json::array();

std::string text(api::Time time) { return api::to_string(time); }

std::string sample(const std::string& more) {
  std::string text = api::sample_text(more);
  const std::string relative = "output: {path: runs}";
  text.replace(text.find(relative), relative.size(), "output: {path: /runs}");
  const std::string batch = "batchSize: 64";  // has to be shared by two servers, and by three
  text.replace(text.find(batch), batch.size(), "batchSize: 96");
  if (more.find("split:") == std::string::npos) text += "  split: {cut: Input}\n";
  return text;
}

}  // namespace

World::World(const std::string& more) : now(*api::parse_time("2026-01-01T00:00:00Z")) {
  auto result = api::resolve_training_job(sample(more));
  ensure(result.errors.empty(), api::to_string(result.errors).c_str());
  job = std::move(result.job);
  job.metadata.namespace_name = "team";
  job.metadata.uid = "0123456789ab";
  job.metadata.generation = 1;
  job.metadata.creation_time = now;
  job.status.emplace();
  options.server_image = "registry.example/outrigger-server:1";
  options.worker_image = "registry.example/outrigger-worker:1";
  options.token_key = "a key";
}

Observed World::observe() const {
  Observed seen;
  seen.job = job;
  for (const auto& [name, object] : pods) {
    if (auto pod = read_pod(object)) seen.pods.push_back(*pod);
  }
  for (const auto& [name, object] : others) {
    const Json& labels = object["metadata"]["labels"];
    const int attempt = std::stoi(labels.value(std::string(api::kAttemptLabel), std::string("0")));
    if (object["kind"] == "Service")
      seen.service = ServiceState{attempt, object["metadata"].value("uid", "")};
    if (object["kind"] == "ConfigMap")
      seen.config_maps[attempt] = {object["metadata"]["name"], object["metadata"].value("uid", "")};
    if (object["kind"] == "NetworkPolicy")
      seen.network_policy = std::stoi(labels.value(std::string(kRanksLabel), std::string("0")));
  }
  seen.queue = queue;
  const auto workload = others.find("Workload/trainingjob-" + job.metadata.name);
  if (workload != others.end()) seen.queue.workload = read_workload(workload->second);
  if (secret_made) seen.secret_age = now - *secret_made;
  seen.unknown = unknown;
  seen.errors = errors;
  seen.only_for_servers = only_for_servers;
  if (const auto wanted = file_wanted(seen))
    seen.former_file = others.at("ConfigMap/" + *wanted)["data"]["job.yaml"];
  seen.refusals = refusals;
  seen.nodes = nodes;
  seen.report = report;
  seen.demand = demand;
  return seen;
}

Plan World::look() const { return plan(observe(), options, now); }

Plan World::pass() {
  Plan made = look();
  const bool silent = made.actions.empty() && !made.unfinished;
  carry_out(made, made.actions.size());
  write_status(made);
  // Nobody looks again because of that write alone (plan.h).
  if (silent) ensure(look().actions.empty() && look().status == status(), "a plan is not finished");
  return made;
}

std::vector<Event> World::settle() {
  std::vector<Event> events;
  for (int i = 0; i < 20; ++i) {
    const api::TrainingJobStatus before = status();
    const Plan made = pass();
    events.insert(events.end(), made.events.begin(), made.events.end());
    if (made.actions.empty() && made.status == before) return events;
  }
  impossible("the operator does not come to rest");
}

void World::carry_out(const Plan& plan, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (const auto* create = std::get_if<Create>(&plan.actions[i])) {
      Json object = Json::parse(create->text);
      const std::string name = object["metadata"]["name"];
      if (create->kind == ObjectKind::kSecret) secret_made = now;
      object["metadata"]["uid"] = "uid-of-" + name;
      object["metadata"]["creationTimestamp"] = text(now);
      const bool fresh =
          create->kind == ObjectKind::kPod
              ? pods.emplace(name, object).second
              : others.emplace(object["kind"].get<std::string>() + "/" + name, object).second;
      if (!fresh && create->kind != ObjectKind::kSecret) ++already_exists;
    } else if (const auto* patch = std::get_if<Patch>(&plan.actions[i])) {
      const std::map<ObjectKind, std::string> kinds{{ObjectKind::kService, "Service/"},
                                                    {ObjectKind::kNetworkPolicy, "NetworkPolicy/"},
                                                    {ObjectKind::kWorkload, "Workload/"}};
      others.at(kinds.at(patch->kind) + patch->name).merge_patch(patch->patch);
    } else if (const auto* scale = std::get_if<Scale>(&plan.actions[i])) {
      spec().workers.replicas = scale->replicas;
    } else {
      const auto& remove = std::get<Remove>(plan.actions[i]);
      if (remove.kind == ObjectKind::kTrainingJob) {
        job_deleted = true;
      } else if (remove.kind == ObjectKind::kWorkload) {
        others.erase("Workload/" + remove.name);
      } else if (remove.kind == ObjectKind::kConfigMap) {
        others.erase("ConfigMap/" + remove.name);
      } else if (remove.grace == seconds(0)) {
        pods.erase(remove.name);
      } else {
        ask_to_delete(remove.name);
      }
    }
  }
}

void World::write_status(const Plan& plan) { job.status = plan.status; }

void World::run(const std::string& pod) {
  Json& object = pods.at(pod);
  object["spec"]["nodeName"] = "node-of-" + pod;
  const std::string role = object["metadata"]["labels"][std::string(api::kRoleLabel)];
  object["status"] = {
      {"phase", "Running"},
      {"podIP", "10.0.0.1"},
      {"startTime", text(now)},
      {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}},
                                  {{"type", "ContainersReady"}, {"status", "True"}}})},
      {"containerStatuses", Json::array({{{"name", role},
                                          {"ready", true},
                                          {"state", {{"running", {{"startedAt", text(now)}}}}}}})}};
}

void World::unready(const std::string& pod) {
  Json& status = pods.at(pod)["status"];
  for (Json& condition : status["conditions"]) condition["status"] = "False";
  status["containerStatuses"][0]["ready"] = false;
}

void World::run_all() {
  for (auto& [name, object] : pods) {
    if (!object.contains("status") && !object["metadata"].contains("deletionTimestamp")) run(name);
  }
}

void World::end(const std::string& pod, const End& how) {
  Json& object = pods.at(pod);
  const std::string role = object["metadata"]["labels"][std::string(api::kRoleLabel)];
  std::string started = text(now);
  if (object.contains("status"))
    started = object["status"]["containerStatuses"][0]["state"]["running"]["startedAt"];
  const Json ended{{"exitCode", how.code},
                   {"reason", how.code == 0 ? "Completed" : how.reason},
                   {"message", how.message},
                   {"startedAt", started},
                   {"finishedAt", text(now)}};
  Json& status = object["status"];
  status["phase"] = how.code == 0 ? "Succeeded" : "Failed";
  status["conditions"] = kNoConditions;
  status["containerStatuses"] = Json::array({{{"name", role}, {"state", {{"terminated", ended}}}}});
}

void World::finish_deletions() {
  std::erase_if(pods, [&](const auto& item) {
    const Json& object = item.second;
    return object["metadata"].contains("deletionTimestamp") &&
           !dead.contains(object["spec"].value("nodeName", std::string()));
  });
}

void World::ask_to_delete(const std::string& pod) {
  const auto at = pods.find(pod);
  if (at == pods.end()) return;
  const Json& spec = at->second["spec"];
  if (!spec.contains("nodeName")) {
    pods.erase(at);  // no kubelet has to be asked
    return;
  }
  const seconds grace(spec.value("terminationGracePeriodSeconds", 30));
  Json& metadata = at->second["metadata"];
  if (!metadata.contains("deletionTimestamp")) metadata["deletionTimestamp"] = text(now + grace);
}

void World::disrupt(const std::string& pod) {
  ask_to_delete(pod);
  end(pod, {143});
  add_condition(pod, {{"type", "DisruptionTarget"}, {"status", "True"}});
}

void World::add_condition(const std::string& pod, const Json& condition) {
  pods.at(pod)["status"]["conditions"].push_back(condition);
}

void World::wait_in(const std::string& pod, const std::string& reason) {
  Json& object = pods.at(pod);
  object["spec"]["nodeName"] = "node-of-" + pod;
  object["status"] = {
      {"phase", "Pending"},
      {"startTime", text(now)},
      {"containerStatuses",
       Json::array({{{"name", "server"},
                     {"state", {{"waiting", {{"reason", reason}, {"message", "why"}}}}}}})}};
}

std::string World::condition(const std::string& type) const {
  for (const auto& one : job.status->conditions) {
    if (one.type == type) return std::string(api::to_string(one.status)) + "/" + one.reason;
  }
  return "";
}

std::vector<std::string> World::names(const std::string& role) const {
  std::vector<std::string> found;
  for (const auto& [name, object] : pods) {
    if (role.empty() || object["metadata"]["labels"][std::string(api::kRoleLabel)] == role)
      found.push_back(name);
  }
  return found;
}

std::vector<std::string> World::living(const std::string& role) const {
  std::vector<std::string> found;
  for (const std::string& name : names(role)) {
    const Json& object = pods.at(name);
    const std::string phase =
        object.contains("status") ? object["status"].value("phase", std::string()) : "";
    if (phase != "Failed" && phase != "Succeeded" &&
        !object["metadata"].contains("deletionTimestamp"))
      found.push_back(name);
  }
  return found;
}

World running(const std::string& more) {
  World world(more);
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

}  // namespace outrigger::controller
