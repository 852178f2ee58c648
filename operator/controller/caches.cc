#include "operator/controller/caches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/names.h"
#include "kube/timer.h"
#include "operator/controller/resources.h"
#include "operator/names.h"
#include "operator/read_pod.h"
#include "operator/read_workload.h"

namespace outrigger::controller {
namespace {

constexpr const char* kByJob = "job";

std::string job_label(const Json& object) {
  return kube::label(object, std::string(api::kJobNameLabel)).value_or("");
}

kube::InformerOptions<JobRecord> job_options(const std::string& ns, const OwnWrite& own_write) {
  kube::InformerOptions<JobRecord> options;
  options.source.resource = kTrainingJobs;
  options.source.selection.ns = ns;
  options.keep = [](Json object) { return read_job(std::move(object)); };
  options.keep_again = [](Json object, const JobRecord& before) {
    return read_job_again(std::move(object), before);
  };
  options.known = [own_write](const kube::ObjectKey& key, const std::string& version) {
    return own_write(key.text(), version);
  };
  return options;
}

template <typename T>
std::string job_key_of(const kube::Cached<T>& child) {
  return kube::ObjectKey{child.key.ns, child.value.job}.text();
}

bool same_but_status(const kube::Cached<JobRecord>& before, const kube::Cached<JobRecord>& after) {
  const auto& a = before.value.job.metadata;
  const auto& b = after.value.job.metadata;
  return a.generation == b.generation && a.deletion_time == b.deletion_time && a.labels == b.labels;
}

// How long changes of a watch that is busy are let gather: of most children the operator knows what
// a watch tells. Less than a pass waits that met a conflict (reconciler.cc).
std::chrono::milliseconds gathering_of(ObjectKind kind) {
  using std::chrono::milliseconds;
  switch (kind) {
    case ObjectKind::kPod:
      return milliseconds(50);
    case ObjectKind::kService:
    case ObjectKind::kConfigMap:
    case ObjectKind::kNetworkPolicy:
      return milliseconds(150);
    default:
      return kube::ReflectorOptions().gather;
  }
}

template <typename T>
using InformerPtr = std::unique_ptr<kube::Informer<T>>;

template <typename T>
InformerPtr<T> follow(kube::Client& client, const std::string& ns, ObjectKind kind,
                      T (*keep)(const Json&), kube::Form form = kube::Form::kWhole) {
  kube::InformerOptions<T> options;
  options.source.resource = resource_of(kind);
  options.source.selection = {.ns = ns, .labels = managed_selector(), .form = form};
  options.source.dropped = kUnread;
  options.source.gather = gathering_of(kind);
  if (kind == ObjectKind::kPod) options.source.kept = kReadOfPods;
  options.source.may_be_absent = kind == ObjectKind::kWorkload;
  options.keep = keep;
  options.indexers[kByJob] = [](const kube::Cached<T>& child) {
    return std::vector<std::string>{job_key_of(child)};
  };
  return std::make_unique<kube::Informer<T>>(client, std::move(options));
}

// Nothing is to be done for a pod that is made, placed, started or ready, but to tell of it.
bool comes_along(const kube::CachedPtr<PodRecord>& pod) {
  const auto& state = pod->value.pod;
  return !state.deleting && !state.ended &&
         (state.phase == PodPhase::kPending || state.phase == PodPhase::kRunning);
}

template <typename T>
GoneChild gone_child(ObjectKind kind, const kube::Cached<T>& child) {
  return {child_name(kind, child.key.name), child.uid, child.value.job_uid};
}

}  // namespace

std::string child_name(ObjectKind kind, const std::string& name) {
  return resource_of(kind).kind + " " + name;
}

PodRecord keep_pod(const Json& object) {
  auto pod = read_pod(object);
  PodRecord record{{}, SharedText(job_label(object)), pod.has_value()};
  if (pod) record.pod = std::move(*pod);
  return record;
}

Pod pod_of(const kube::Cached<PodRecord>& cached) {
  return {cached.value.pod, cached.key.name, cached.uid};
}

ChildRecord keep_child(const Json& object) {
  ChildRecord child;
  child.job = job_label(object);
  if (const auto owner = kube::controller_of(object)) child.job_uid = owner->uid;
  auto number = kube::label(object, std::string(api::kAttemptLabel));
  if (!number) number = kube::label(object, std::string(kRanksLabel));
  try {
    if (number) child.number = std::stoi(*number);
  } catch (const std::exception&) {
    child.number = 0;  // somebody changed the label
  }
  return child;
}

WorkloadRecord keep_workload(const Json& object) {
  const auto owner = kube::controller_of(object);
  return {read_workload(object), job_label(object), owner ? owner->uid : ""};
}

struct Caches::Scope {
  Scope(kube::Client& client, const std::string& ns, const OwnWrite& own_write)
      : jobs(client, job_options(ns, own_write)),
        pods(follow<PodRecord>(client, ns, ObjectKind::kPod, keep_pod)),
        workloads(follow<WorkloadRecord>(client, ns, ObjectKind::kWorkload, keep_workload)) {
    for (const ObjectKind kind :
         {ObjectKind::kService, ObjectKind::kConfigMap, ObjectKind::kNetworkPolicy})
      children[kind] = follow<ChildRecord>(client, ns, kind, keep_child, kube::Form::kMetadata);
  }

  kube::Informer<JobRecord> jobs;
  InformerPtr<PodRecord> pods;
  InformerPtr<WorkloadRecord> workloads;
  std::map<ObjectKind, InformerPtr<ChildRecord>> children;
};

Caches::Caches(kube::Client& client, const std::vector<std::string>& namespaces,
               const OwnWrite& own_write) {
  for (const std::string& ns : namespaces)
    scopes_[ns] = std::make_unique<Scope>(client, ns, own_write);
  if (namespaces.empty()) scopes_[""] = std::make_unique<Scope>(client, "", own_write);
}

Caches::~Caches() = default;

void Caches::on_change(const JobNotice& notice) {
  for (auto& [ns, scope] : scopes_) {
    scope->jobs.on_change([notice](const auto& before, const auto& after) {
      const bool only_status = before && after && same_but_status(*before, *after);
      notice((after ? after : before)->key.text(), only_status,
             after ? after->resource_version : "");
    });
  }
}

void Caches::on_child_change(const ChildNotice& notice) {
  for (auto& [ns, scope] : scopes_) {
    scope->pods->on_change([notice](const auto& before, const auto& after) {
      notice(job_key_of(*(after ? after : before)), !after || !comes_along(after));
    });
    scope->workloads->on_change([notice](const auto& before, const auto& after) {
      notice(job_key_of(*(after ? after : before)), true);
    });
    for (auto& [kind, informer] : scope->children) {
      informer->on_change([notice](const auto& before, const auto& after) {
        if (before) notice(job_key_of(*(after ? after : before)), true);
      });
    }
  }
}

void Caches::on_pod_gone(const GoneNotice& notice) {
  for (auto& [ns, scope] : scopes_) {
    scope->pods->on_change([notice](const auto& before, const auto& after) {
      if (!after) notice(job_key_of(*before), before->uid);
    });
  }
}

void Caches::on_child_gone(const GoneChildNotice& notice) {
  for (auto& [ns, scope] : scopes_) {
    scope->workloads->on_change([notice](const auto& before, const auto& after) {
      if (!after) notice(job_key_of(*before), gone_child(ObjectKind::kWorkload, *before));
    });
    for (auto& child : scope->children) {
      const ObjectKind kind = child.first;
      child.second->on_change([notice, kind](const auto& before, const auto& after) {
        if (!after) notice(job_key_of(*before), gone_child(kind, *before));
      });
    }
  }
}

void Caches::on_new_child(const NewChildNotice& notice) {
  for (auto& [ns, scope] : scopes_) {
    for (auto& child : scope->children) {
      const ObjectKind kind = child.first;
      child.second->on_change([notice, kind](const auto& before, const auto& after) {
        if (before || !after) return;
        notice(job_key_of(*after), child_name(kind, after->key.name), after->value.number);
      });
    }
  }
}

void Caches::start() {
  for (auto& [ns, scope] : scopes_) {
    scope->jobs.start();
    scope->pods->start();
    scope->workloads->start();
    for (auto& [kind, informer] : scope->children) informer->start();
  }
}

bool Caches::is_full(const Scope& scope) {
  const auto& children = scope.children;
  return scope.jobs.has_synced() && scope.pods->has_synced() &&
         std::all_of(children.begin(), children.end(),
                     [](const auto& child) { return child.second->has_synced(); });
}

bool Caches::has_synced(const std::string& ns) const {
  const Scope* scope = scope_of(ns);
  return scope != nullptr && is_full(*scope);
}

std::vector<std::string> Caches::unlisted() const {
  std::vector<std::string> names;
  for (const auto& [ns, scope] : scopes_) {
    if (!is_full(*scope)) names.push_back(ns);
  }
  return names;
}

bool Caches::wait_for_sync(const std::stop_token& stop, const std::function<void()>& waiting) {
  constexpr std::chrono::milliseconds kLook{20};
  while (std::none_of(scopes_.begin(), scopes_.end(),
                      [](const auto& scope) { return is_full(*scope.second); })) {
    waiting();
    if (!kube::Timer::system().sleep(kLook, stop)) return false;
  }
  return !stop.stop_requested();
}

void Caches::stop() {
  for (auto& [ns, scope] : scopes_) {
    scope->jobs.stop();
    scope->pods->stop();
    scope->workloads->stop();
    for (auto& [kind, informer] : scope->children) informer->stop();
  }
}

const Caches::Scope* Caches::scope_of(const std::string& ns) const {
  auto found = scopes_.find(ns);
  if (found == scopes_.end()) found = scopes_.find("");
  return found == scopes_.end() ? nullptr : found->second.get();
}

kube::CachedPtr<JobRecord> Caches::job(const kube::ObjectKey& key) const {
  const Scope* scope = scope_of(key.ns);
  return scope == nullptr ? nullptr : scope->jobs.store().get(key);
}

std::vector<kube::CachedPtr<JobRecord>> Caches::jobs() const {
  std::vector<kube::CachedPtr<JobRecord>> all;
  for (const auto& [ns, scope] : scopes_) {
    for (auto& job : scope->jobs.store().list()) all.push_back(std::move(job));
  }
  return all;
}

std::vector<kube::CachedPtr<PodRecord>> Caches::pods(const std::string& job_key) const {
  const Scope* scope = scope_of(kube::ObjectKey::parse(job_key).ns);
  if (scope == nullptr) return {};
  auto pods = scope->pods->store().by_index(kByJob, job_key);
  std::erase_if(pods, [](const auto& pod) { return !pod->value.ours; });
  return pods;
}

std::vector<kube::CachedPtr<ChildRecord>> Caches::children(ObjectKind kind,
                                                           const std::string& job_key) const {
  const Scope* scope = scope_of(kube::ObjectKey::parse(job_key).ns);
  if (scope == nullptr) return {};
  return scope->children.at(kind)->store().by_index(kByJob, job_key);
}

bool Caches::knows_workloads(const std::string& ns) const {
  const Scope* scope = scope_of(ns);
  return scope != nullptr && scope->workloads->has_synced();
}

kube::CachedPtr<WorkloadRecord> Caches::workload(const std::string& job_key,
                                                 const std::string& job_uid) const {
  const Scope* scope = scope_of(kube::ObjectKey::parse(job_key).ns);
  if (scope == nullptr) return nullptr;
  for (auto& workload : scope->workloads->store().by_index(kByJob, job_key)) {
    if (workload->value.job_uid == job_uid) return workload;
  }
  return nullptr;
}

}  // namespace outrigger::controller
