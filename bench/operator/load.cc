#include "bench/operator/load.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>
#include <utility>

#include "api/names.h"
#include "api/parse.h"
#include "bench/operator/stage.h"
#include "common/error.h"
#include "operator/objects/children.h"
#include "operator/objects/pod.h"
#include "operator/read_job.h"

namespace outrigger::bench {
namespace {

constexpr int kThreads = 8;

const kube::Resource kTrainingJobs{std::string(api::kGroup), std::string(api::kVersion),
                                   std::string(api::kPlural), std::string(api::kKind)};
const kube::Resource kJobs{"batch", "v1", "jobs", "Job"};
const kube::Resource kPods{"", "v1", "pods", "Pod"};
const kube::Resource kServices{"", "v1", "services", "Service"};
const kube::Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
const kube::Resource kSecrets{"", "v1", "secrets", "Secret"};
const kube::Resource kPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};
const kube::Resource kEvents{"events.k8s.io", "v1", "events", "Event"};
// In every namespace from the start.
constexpr const char* kRootAuthority = "kube-root-ca.crt";

std::string job_name(int number) { return "job-" + std::to_string(number); }

controller::Options operator_options() {
  controller::Options options;
  options.server_image = "registry.example/outrigger-server:1";
  options.worker_image = "registry.example/outrigger-worker:1";
  options.token_key = "a key of at least thirty-two bytes, and some more";
  return options;
}

Json disowned(Json object) {
  object["metadata"].erase("ownerReferences");
  object["metadata"]["labels"][std::string(api::kManagedByLabel)] = "bench";
  return object;
}

kube::InformerOptions<std::string> pods_of(const std::string& ns) {
  kube::InformerOptions<std::string> options;
  options.source.resource = kPods;
  options.source.selection.ns = ns;
  options.keep = [](const Json& pod) {
    return kube::label(pod, std::string(api::kJobNameLabel)).value_or("");
  };
  return options;
}

}  // namespace

Posting training_job(const std::string& ns, int number) {
  const Json on_node{{"spec", {{"nodeName", Stage::node(number)}}}};
  Json spec{
      {"model", {{"name", "lenet5"}}},
      {"data", {{"train", {{"path", "/data/faces"}}}, {"image", {{"height", 28}, {"width", 28}}}}},
      {"training",
       {{"epochs", 3}, {"batchSize", 96}, {"schedule", {{"constant", {{"base", 0.1}}}}}}},
      {"split", {{"cut", "Input"}}},
      {"server", {{"template", on_node}}},
      {"workers", {{"replicas", kPodsOfAJob - 1}, {"template", on_node}}},
      {"output", {{"path", "/runs"}}}};
  return {kTrainingJobs,
          {{"apiVersion", api::kApiVersion},
           {"kind", api::kKind},
           {"metadata", {{"name", job_name(number)}, {"namespace", ns}}},
           {"spec", std::move(spec)}}};
}

std::vector<Posting> objects_of_a_job(const std::string& ns, int number) {
  Json object = training_job(ns, number).object;
  object["metadata"]["uid"] = "00000000-0000-0000-0000-" + std::to_string(100'000'000'000 + number);
  const api::TrainingJob job = controller::read_job(object).job;
  const controller::Options options = operator_options();
  std::vector<Posting> all{{kSecrets, controller::build_secret(job, options)},
                           {kPolicies, controller::build_network_policy(job)},
                           {kServices, controller::build_service(job, 1)},
                           {kConfigMaps, controller::build_config_map(job, 1)}};
  for (int i = 0; i < kPodsOfAJob; ++i) {
    controller::PodOrder order;
    order.place.role = i == 0 ? api::Role::kServer : api::Role::kWorker;
    order.place.index = i == 0 ? 0 : i - 1;
    order.image = i == 0 ? options.server_image : options.worker_image;
    all.push_back({kPods, controller::build_pod(job, order, options)});
  }
  for (Posting& one : all) one.object = disowned(std::move(one.object));
  return all;
}

Posting builtin_job(const std::string& ns, int number) {
  const Json pod = objects_of_a_job(ns, number).back().object;
  const Json labels{{api::kJobNameLabel, job_name(number)}};
  return {kJobs,
          {{"apiVersion", "batch/v1"},
           {"kind", "Job"},
           {"metadata", {{"name", job_name(number)}, {"namespace", ns}}},
           {"spec",
            {{"parallelism", kPodsOfAJob},
             {"completions", kPodsOfAJob},
             {"template", {{"metadata", {{"labels", labels}}}, {"spec", pod.at("spec")}}}}}}};
}

Posting other_pod(const std::string& ns, int number) {
  return {kPods,
          {{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata", {{"name", "other-" + std::to_string(number)}, {"namespace", ns}}},
           {"spec", {{"containers", Json::array({{{"name", "main"}, {"image", "other:1"}}})}}}}};
}

void post_all(int count, const std::function<void(int)>& post) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int number = next++; number < count; number = next++) post(number);
    });
  }
}

void post(kube::Client& client, const Posting& posting) {
  (void)client.create(posting.resource, posting.object).take();
}

std::string made_of_a_job(kube::Client& client, const std::string& ns, int jobs) {
  std::ostringstream text;
  text.precision(1);
  text << std::fixed;
  for (const auto* kind : {&kPods, &kServices, &kConfigMaps, &kSecrets, &kPolicies, &kEvents}) {
    const auto objects = client.list(*kind, {.ns = ns, .form = kube::Form::kMetadata}).take();
    const auto made = std::ranges::count_if(
        objects, [](const Json& object) { return kube::name_of(object) != kRootAuthority; });
    text << (kind == &kPods ? "" : ", ") << static_cast<double>(made) / jobs << ' ' << kind->plural;
  }
  return text.str();
}

void wait_until(const std::string& what, std::chrono::milliseconds period,
                const std::function<bool()>& holds) {
  const auto deadline = Steady::now() + kPatience;
  while (!holds()) {
    if (Steady::now() > deadline) throw IoError("never: " + what);
    std::this_thread::sleep_for(period);
  }
}

PodCount::PodCount(kube::Client& client, const std::string& ns) : informer_(client, pods_of(ns)) {
  informer_.on_change([this](const auto& before, const auto& after) {
    if (before || !after) return;
    {
      const std::scoped_lock lock(mutex_);
      last_ = Steady::now();
      ++pods_;
      OfAJob& job = jobs_[after->value];
      ++job.pods;
      job.last = last_;
    }
    changed_.notify_all();
  });
  informer_.start();
  if (!informer_.wait_for_sync({})) throw IoError("the pods of " + ns + " cannot be followed");
}

Steady::time_point PodCount::until(int pods) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return pods_ >= pods; }))
    throw IoError("there are " + std::to_string(pods_) + " of " + std::to_string(pods) + " pods");
  return last_;
}

Steady::time_point PodCount::complete_at(const std::string& job) {
  const std::scoped_lock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.pods < kPodsOfAJob)
    throw IoError(job + " does not have all its pods");
  return found->second.last;
}

double metric(const std::string& page, const std::string& name, const std::string& part) {
  double sum = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const bool named = line.starts_with(name + "{") || line.starts_with(name + " ");
    if (named && line.find(part) != std::string::npos)
      sum += std::stod(line.substr(line.rfind(' ')));
  }
  return sum;
}

}  // namespace outrigger::bench
