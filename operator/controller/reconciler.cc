#include "operator/controller/reconciler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/names.h"
#include "api/write.h"
#include "common/error.h"
#include "common/log.h"
#include "kube/json_fields.h"
#include "kube/object/object.h"
#include "operator/controller/applier.h"
#include "operator/controller/resources.h"
#include "operator/names.h"
#include "operator/policy/haste.h"
#include "operator/policy/pods.h"
#include "operator/read_pod.h"

namespace outrigger::controller {
namespace {

using std::chrono::milliseconds;

// Behind the second in which something is due: times have whole seconds.
constexpr milliseconds kAfterDue{50};
// A pass that changed nothing is not repeated at once, whatever it asks for.
constexpr std::chrono::seconds kAtLeast{1};
// A deletion that no watch told of is believed after a minute; nobody else would look again then.
constexpr std::chrono::seconds kCachesAreSure{61};
// A conflict: the watch brings what changed within moments.
constexpr milliseconds kAfterConflict{200};

std::string server_ip(const Observed& seen) {
  const Pod* server = running_first_server(seen.pods, seen.job.metadata.uid);
  return server == nullptr || server->deleting ? std::string() : server->ip;
}

kube::CachedPtr<JobRecord> newer_of(const kube::CachedPtr<JobRecord>& cached,
                                    const kube::CachedPtr<JobRecord>& written) {
  const bool newer = written && written->uid == cached->uid &&
                     kube::is_older_version(cached->resource_version, written->resource_version);
  return newer ? written : cached;
}

// For how long what reports say about workers matters.
std::chrono::seconds demand_window(const api::WorkersSpec& workers) {
  if (!workers.autoscaling) return std::chrono::seconds(0);
  constexpr std::chrono::seconds kLeast{1};
  return std::max({workers.autoscaling->up_window, workers.autoscaling->down_window, kLeast});
}

// Of the answer to a write of the status.
const std::vector<kube::KeptFields> kVersionAlone{{"metadata", {"resourceVersion"}}};

std::string status_object(const kube::Cached<JobRecord>& job,
                          const api::TrainingJobStatus& status) {
  kube::OrderedJson object{{"apiVersion", api::kApiVersion},
                           {"kind", api::kKind},
                           {"metadata",
                            {{"name", job.key.name},
                             {"namespace", job.key.ns},
                             {"uid", job.uid},
                             {"resourceVersion", job.resource_version}}}};
  object["status"] = api::to_json(status);
  return kube::to_text(object);
}

}  // namespace

api::Time Reconciler::system_time() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

Reconciler::Reconciler(kube::Client& client, const Caches& caches, Memory& memory,
                       kube::EventRecorder& events, ControllerMetrics& metrics, Options options,
                       WallClock clock)
    : client_(client),
      caches_(caches),
      memory_(memory),
      events_(events),
      metrics_(metrics),
      options_(std::move(options)),
      clock_(std::move(clock)) {}

Observed Reconciler::observe(const JobRecord& record, const std::string& job_key, JobMemory& memory,
                             api::Time now) {
  Observed seen;
  seen.job = record.job;
  seen.errors = record.errors;
  seen.only_invalid = record.only_invalid;
  seen.only_for_servers = record.only_for_servers;
  seen.unknown = record.unknown;
  const TimePoint steady = SystemClock().now();
  const auto cached_pods = caches_.pods(job_key);
  ask_unseen_pods(cached_pods, record.job.metadata.namespace_name, memory);
  seen.pods = memory.overlay(cached_pods, steady);
  const std::string& name = record.job.metadata.name;
  const std::string& uid = record.job.metadata.uid;
  const auto dropped = memory.dropped();
  const auto own = [&](ObjectKind kind) {
    auto children = caches_.children(kind, job_key);
    std::erase_if(children, [&](const auto& child) {
      return child->value.job_uid != uid || dropped.contains(child->uid);
    });
    return children;
  };
  const auto known = [&](ObjectKind kind, const std::string& child) {
    std::optional<int> cached;
    for (const auto& one : own(kind)) {
      if (one->key.name == child) cached = one->value.number;
    }
    return memory.child(child_name(kind, child), cached, steady);
  };
  if (const auto attempt = known(ObjectKind::kService, service_name(name))) {
    const auto cached = own(ObjectKind::kService);
    seen.service = ServiceState{*attempt, cached.empty() ? std::string() : cached.front()->uid};
  }
  for (const auto& map : own(ObjectKind::kConfigMap))
    seen.config_maps[map->value.number] = {map->key.name, map->uid};
  // The first attempt's objects are made before the status tells of it.
  const int attempt = std::max(1, record.job.status->execution_attempts);
  if (known(ObjectKind::kConfigMap, config_map_name(name, attempt)))
    seen.config_maps.try_emplace(attempt, ConfigMapState{config_map_name(name, attempt), {}});
  seen.network_policy = known(ObjectKind::kNetworkPolicy, network_policy_name(name));
  if (const auto age = memory.secret_age(attempt, steady))
    seen.secret_age = std::chrono::duration_cast<std::chrono::seconds>(*age);
  seen.former_file = ask_former_file(seen);
  seen.refusals = memory.refusals(now);
  const Pod* server = running_first_server(seen.pods, seen.job.metadata.uid);
  seen.report = memory.report_of(server == nullptr ? std::string() : server->uid);
  seen.demand = memory.demand(demand_window(record.job.spec.workers));
  ask_nodes(seen, now);
  look_at_queue(seen, job_key, memory);
  return seen;
}

// What a silent watch does not show is not gone: a server that runs would be replaced for it.
void Reconciler::ask_unseen_pods(const std::vector<kube::CachedPtr<PodRecord>>& cached,
                                 const std::string& ns, JobMemory& memory) {
  const TimePoint now = SystemClock().now();
  for (const PodName& pod : memory.unseen_pods(cached, now)) {
    const auto found = client_.get(kPods, {ns, pod.name});
    if (found && kube::uid_of(*found) == pod.uid) {
      memory.found_pod(*found, now);
    } else if (found || found.error().not_found()) {
      memory.pod_is_gone(pod.uid, now);
    } else {
      throw kube::ApiError(found.error());
    }
  }
}

std::optional<std::string> Reconciler::ask_former_file(const Observed& seen) {
  const auto name = file_wanted(seen);
  if (!name) return std::nullopt;
  const auto map = client_.get(kConfigMaps, {seen.job.metadata.namespace_name, *name});
  if (!map) {
    if (map.error().not_found()) return std::nullopt;
    throw kube::ApiError(map.error());  // without it the next attempt would train otherwise
  }
  std::string file = kube::text_at(kube::at(*map, "data"), api::kJobFileName);
  return file.empty() ? std::nullopt : std::optional(std::move(file));
}

void Reconciler::ask_nodes(Observed& seen, api::Time now) {
  for (const std::string& name : nodes_wanted(seen.pods, now)) {
    const auto node = client_.get(kNodes, {"", name});
    if (node) {
      seen.nodes[name] = read_node(*node);
    } else if (node.error().not_found()) {
      seen.nodes[name] = {.exists = false};
    } else {
      // Without the right to read nodes, pods on dead ones are left to people.
      log::debug("node {}: {}", name, node.error().what());
    }
  }
}

bool Reconciler::write_status(const kube::Cached<JobRecord>& job, const Plan& plan,
                              JobMemory& memory) {
  // Not strict: a cluster whose CRD is older keeps what that knows.
  const auto result = client_.update_status(
      kTrainingJobs, job.key, status_object(job, plan.status),
      {.strict = false, .answer = kube::Form::kMetadata, .kept = kVersionAlone});
  if (!result) {
    if (result.error().conflict()) return is_written(job, plan, memory);
    if (result.error().not_found()) return false;
    throw kube::ApiError(result.error());
  }
  auto written = std::make_shared<kube::Cached<JobRecord>>();
  written->key = job.key;
  written->uid = job.uid;
  written->resource_version = kube::resource_version_of(*result);
  written->value = job.value;
  written->value.job.status = plan.status;
  written->value.job.metadata.resource_version = written->resource_version;
  memory.wrote_job(std::move(written), SystemClock().now());
  return true;
}

bool Reconciler::is_written(const kube::Cached<JobRecord>& job, const Plan& plan,
                            JobMemory& memory) {
  // A list, whose fields are all built: of single objects this client drops those of templates.
  auto found =
      client_.list(kTrainingJobs, {.ns = job.key.ns, .fields = "metadata.name=" + job.key.name})
          .take();
  if (found.empty() || kube::uid_of(found.front()) != job.uid) {
    memory.found_job(nullptr);
    return false;
  }
  auto stored = std::make_shared<kube::Cached<JobRecord>>();
  stored->key = job.key;
  stored->uid = job.uid;
  stored->resource_version = kube::resource_version_of(found.front());
  stored->value = read_job_again(std::move(found.front()), job.value);
  const bool ours = stored->value.job.status == plan.status;
  if (ours) {
    memory.wrote_job(std::move(stored), SystemClock().now());
  } else {
    memory.found_job(std::move(stored));
  }
  return ours;
}

void Reconciler::tell(const kube::Cached<JobRecord>& job, const Plan& plan) {
  const kube::EventSubject subject{std::string(api::kApiVersion), std::string(api::kKind), job.key,
                                   job.uid, job.resource_version};
  for (const Event& event : plan.events) {
    log::info("{}: {}: {}", job.key.text(), event.reason, event.message);
    events_.record(subject, {event.warning ? kube::EventType::kWarning : kube::EventType::kNormal,
                             event.reason, "Reconcile", event.message});
  }
  metrics_.told(job.value.job, plan);
}

bool Reconciler::carry_out(const kube::Cached<JobRecord>& job, const Plan& plan, JobMemory& memory,
                           Outcome& outcome) {
  const auto tell_of_beginning = [&] {
    if (plan.begins && write_status(job, plan, memory)) tell(job, plan);
  };
  Applier::Outcome how{};
  try {
    how = Applier(client_, job.value.job, memory).apply(plan);
  } catch (const Cancelled&) {
    throw;
  } catch (const Error&) {
    tell_of_beginning();
    throw;
  }
  if (how == Applier::Outcome::kDone) return true;
  tell_of_beginning();
  outcome.again = how == Applier::Outcome::kRefused ? Duration::zero() : Duration(kAfterConflict);
  return false;
}

Reconciler::Outcome Reconciler::reconcile(const std::string& job_key) {
  const auto former = memory_.find(job_key);
  const auto written = former ? former->own_write() : nullptr;
  const auto cached = caches_.job(kube::ObjectKey::parse(job_key));
  if (!cached) {
    memory_.forget(job_key);
    return {};
  }
  const auto memory = memory_.of(job_key, cached->uid);
  memory->cache_shows(cached->resource_version);
  const auto job = newer_of(cached, written);
  const api::Time now = clock_();
  const Observed seen = observe(job->value, job_key, *memory, now);
  const Plan made = plan(seen, options_, now);
  Outcome outcome{.again = std::nullopt, .server_ip = server_ip(seen)};
  if (!carry_out(*job, made, *memory, outcome)) return outcome;
  const bool differs = made.status != *seen.job.status;
  const Duration wait = differs && only_counts(*seen.job.status, made)
                            ? memory->may_wait(SystemClock().now())
                            : Duration::zero();
  // What a first attempt's objects tell as well is written once nothing else is to be done.
  const bool later = made.begins && !made.actions.empty();
  const bool writes = differs && !later && wait == wait.zero();
  if (writes && !write_status(*job, made, *memory))
    return {.again = kAfterConflict, .server_ip = outcome.server_ip};
  if (writes) tell(*job, made);
  const auto again_in = [&](Duration time, kube::Priority priority = kube::Priority::kNormal) {
    if (outcome.again && *outcome.again <= time) return;
    outcome.again = time;
    outcome.priority = priority;
  };
  if (made.look_again) {
    const Duration due = *made.look_again - now;
    const Duration least = writes ? Duration::zero() : Duration(kAtLeast);
    again_in(std::max(due <= due.zero() ? due : due + kAfterDue, least));
  }
  if (later || wait > wait.zero()) again_in(wait, kube::Priority::kLow);
  if (writes && made.unfinished) again_in(Duration::zero());
  if (memory->awaits_caches()) again_in(kCachesAreSure);
  return outcome;
}

}  // namespace outrigger::controller
