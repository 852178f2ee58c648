#include "operator/controller/manager.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "api/names.h"
#include "common/error.h"
#include "common/log.h"
#include "kube/client/api_error.h"
#include "kube/client/client.h"
#include "kube/client/service_account.h"
#include "kube/control/events.h"
#include "kube/control/leader_election.h"
#include "kube/control/work_queue.h"
#include "operator/controller/caches.h"
#include "operator/controller/memory.h"
#include "operator/controller/metrics.h"
#include "operator/controller/reconciler.h"
#include "operator/controller/resources.h"
#include "operator/names.h"
#include "operator/policy/haste.h"
#include "telemetry/status_server.h"

namespace outrigger::controller {
namespace {

constexpr std::chrono::seconds kBetweenCounts{5};
// At a job of a namespace that is not in the caches yet.
constexpr std::chrono::seconds kBetweenLooks{1};

/// Everything that runs while this process leads.
class Shift {
 public:
  Shift(const ManagerOptions& options, ControllerMetrics& metrics, const std::stop_token& stop);
  /// Gets the namespaces that are not in the caches yet.
  using Listener = std::function<void(std::vector<std::string> unlisted)>;
  /// Returns when `stop` is requested and nothing runs any more. `working` is called once it works
  /// on a namespace, and every few seconds from then on.
  void run(const std::stop_token& stop, const Listener& working);

 private:
  void work(const std::stop_token& stop);
  void work_on(const std::string& job_key);
  /// What the server is to be told that reports.
  std::optional<Edit> heard(const std::string& job_key, const ServerReport& report);
  void tell_of_refused_edit(const kube::Cached<JobRecord>& job, const std::string& why);

  const ManagerOptions& options_;
  ControllerMetrics& metrics_;
  kube::Client client_;
  Memory memory_;
  Caches caches_;
  kube::EventRecorder events_;
  Reconciler reconciler_;
  kube::WorkQueue queue_;
  Poller poller_;
};

kube::ClientOptions client_options(ControllerMetrics& metrics) {
  kube::ClientOptions options;
  options.user_agent = std::string(kComponent);
  options.observer = &metrics;
  options.dropped = kUnread;
  return options;
}

kube::EventRecorderOptions event_options(const ManagerOptions& options,
                                         ControllerMetrics& metrics) {
  kube::EventRecorderOptions events;
  events.controller = "outrigger.dev/operator";
  events.instance = options.identity;
  events.observer = &metrics;
  return events;
}

// Nobody deletes the Lease but Kubernetes: with the account that the chart made for our pods.
std::vector<kube::OwnerReference> lease_owners(const ManagerOptions& options) {
  const auto account = kube::service_account_of(options.api_server);
  if (!account || account->ns != options.lease_ns) return {};
  return {{"v1", "ServiceAccount", account->name, account->uid}};
}

kube::WorkQueueOptions queue_options(ControllerMetrics& metrics) {
  kube::WorkQueueOptions queue;
  queue.name = "trainingjob";
  queue.observer = &metrics;
  return queue;
}

// What the API server asked for with its refusal; at most what a job's own back-off grows to.
Duration wait_wanted_by(const std::exception& error) {
  constexpr std::chrono::seconds kLongest{300};
  const auto* refusal = dynamic_cast<const kube::ApiError*>(&error);
  const auto wanted = refusal == nullptr ? std::nullopt : refusal->retry_after();
  return std::min(wanted.value_or(std::chrono::seconds(0)), kLongest);
}

Shift::Shift(const ManagerOptions& options, ControllerMetrics& metrics, const std::stop_token& stop)
    : options_(options),
      metrics_(metrics),
      client_(options.api_server, client_options(metrics), stop),
      caches_(client_, options.namespaces,
              [this](const std::string& job_key, const std::string& version) {
                const auto memory = memory_.find(job_key);
                return memory ? memory->own_write(version) : nullptr;
              }),
      events_(client_, event_options(options, metrics)),
      reconciler_(client_, caches_, memory_, events_, metrics, options.jobs),
      queue_(queue_options(metrics)),
      poller_({.period = options.poll_period, .ask = options.ask, .tell = options.tell}, metrics,
              [this](const std::string& job_key, const ServerReport& report) {
                return heard(job_key, report);
              }) {
  caches_.on_pod_gone([this](const std::string& job_key, const std::string& uid) {
    if (const auto memory = memory_.find(job_key)) memory->pod_is_gone(uid, SystemClock().now());
  });
  caches_.on_child_gone([this](const std::string& job_key, const std::string& child) {
    if (const auto memory = memory_.find(job_key)) memory->child_is_gone(child);
  });
  caches_.on_change(
      [this](const std::string& job_key, bool only_status, const std::string& version) {
        if (!only_status) return queue_.add(job_key);
        // Of our own write there is nothing to learn; what looks foreign may be one whose answer is
        // still under way.
        const auto memory = memory_.find(job_key);
        if (!memory || !memory->cache_shows(version))
          queue_.add_after(job_key, gathering_time(queue_.size()));
      });
  caches_.on_child_change([this](const std::string& job_key, bool urgent) {
    const Duration gathering = gathering_time(queue_.size());
    if (urgent) return queue_.add_after(job_key, gathering);
    // What will only be told comes together with what follows, as it cannot be written before.
    const auto memory = memory_.find(job_key);
    const Duration rest = memory ? memory->may_wait(SystemClock().now()) : Duration::zero();
    queue_.add_after(job_key, std::max(gathering, rest), kube::Priority::kLow);
  });
}

void Shift::run(const std::stop_token& stop, const Listener& working) {
  caches_.start();
  if (caches_.wait_for_sync(stop)) {
    log::info("{} jobs are known; working", caches_.jobs().size());
    poller_.start();
    std::vector<std::jthread> threads;
    for (int i = 0; i < options_.workers; ++i) threads.emplace_back([this, &stop] { work(stop); });
    while (!stop.stop_requested()) {
      working(caches_.unlisted());
      metrics_.count(caches_.jobs());
      queue_.tell_of_work();
      poller_.tell_of_work();
      kube::Timer::system().sleep(kBetweenCounts, stop);
    }
    queue_.shut_down();
    threads.clear();
    poller_.stop();
  }
  caches_.stop();
}

void Shift::work(const std::stop_token& stop) {
  while (const auto job_key = queue_.take(stop)) {
    metrics_.worker_is_busy(true);
    work_on(*job_key);
    metrics_.worker_is_busy(false);
    queue_.done(*job_key);
  }
}

void Shift::work_on(const std::string& job_key) {
  using Result = ControllerMetrics::Result;
  // Without all that belongs to a job what is missing would be made anew.
  if (!caches_.has_synced(kube::ObjectKey::parse(job_key).ns))
    return queue_.add_after(job_key, kBetweenLooks);
  const TimePoint begin = SystemClock().now();
  Result result = Result::kSuccess;
  try {
    const auto outcome = reconciler_.reconcile(job_key);
    poller_.watch(job_key, outcome.server_ip);
    queue_.forget(job_key);
    if (outcome.again) {
      result = Result::kRequeueAfter;
      queue_.add_after(job_key, *outcome.again, outcome.priority);
    }
  } catch (const Cancelled&) {
    return;
  } catch (const std::exception& error) {
    log::warning("{}: {}", job_key, error.what());
    result = Result::kError;
    queue_.add_rate_limited(job_key, wait_wanted_by(error));
  }
  metrics_.reconciled(result, SystemClock().now() - begin);
}

std::optional<Edit> Shift::heard(const std::string& job_key, const ServerReport& report) {
  const auto memory = memory_.find(job_key);
  if (memory) memory->reported(report, Reconciler::system_time());
  queue_.add(job_key, kube::Priority::kLow);
  const auto job = caches_.job(kube::ObjectKey::parse(job_key));
  if (!memory || !job || job->uid != memory->uid()) return std::nullopt;
  if (is_behind(report, job->value.job)) {
    std::vector<Pod> pods;
    for (const auto& pod : caches_.pods(job_key)) pods.push_back(pod_of(*pod));
    return edit_for(job->value, pods, options_.jobs);
  }
  const auto& generation = job->value.job.metadata.generation;
  if (generation && report.told_generation == generation && !report.edit_refused.empty() &&
      memory->first_refusal_of(*generation))
    tell_of_refused_edit(*job, report.edit_refused);
  return std::nullopt;
}

void Shift::tell_of_refused_edit(const kube::Cached<JobRecord>& job, const std::string& why) {
  log::info("{}: its server refuses the edit: {}", job.key.text(), why);
  events_.record({std::string(api::kApiVersion), std::string(api::kKind), job.key, job.uid,
                  job.resource_version},
                 {kube::EventType::kWarning, "EditRefused", "TellServer",
                  why + "; its next attempt begins with this spec: edit it again"});
}

// By the lists that came: of what a Caches waits for.
std::vector<std::string> unknown_resources(ControllerMetrics& metrics,
                                           const std::vector<std::string>& namespaces) {
  std::string where;
  for (const std::string& ns : namespaces) where += (where.empty() ? "" : ", ") + ns;
  where = namespaces.empty() ? "all namespaces" : "the namespaces " + where;
  std::vector<std::string> reasons;
  for (const kube::Resource* resource :
       {&kTrainingJobs, &kPods, &kServices, &kConfigMaps, &kNetworkPolicies}) {
    if (metrics.lists(resource->plural) == 0)
      reasons.push_back("no list of " + resource->plural + " in " + where + " yet");
  }
  if (reasons.empty()) reasons.emplace_back("not all of a namespace is listed yet in " + where);
  return reasons;
}

}  // namespace

struct Manager::Impl {
  explicit Impl(ManagerOptions given) : options(std::move(given)), observer(metrics) {
    observer.set_workers(options.workers);
    telemetry::StatusSource source;
    source.not_ready = [this] { return not_ready(); };
    source.status_json = [this] {
      const std::scoped_lock lock(mutex);
      return nlohmann::json{
          {"leader", leading.load()}, {"identity", options.identity}, {"unlisted", unlisted}}
          .dump();
    };
    telemetry::StatusServerOptions pages;
    pages.http.address = options.listen;
    pages.http.port = options.status_port;
    pages.http.threads = 4;
    server = std::make_unique<telemetry::StatusServer>(pages, metrics, source);
  }

  // One that does not lead is ready to.
  std::vector<std::string> not_ready() {
    if (failed) return {"the lease is lost"};
    if (!leading || working || system_now() - led_since.load() < options.longest_fill) return {};
    return unknown_resources(observer, options.namespaces);
  }

  void lead(const std::stop_token& stop) {
    led_since = system_now();
    leading = true;
    try {
      Shift shift(options, observer, stop);
      shift.run(stop, [this](std::vector<std::string> namespaces) {
        const std::scoped_lock lock(mutex);
        unlisted = std::move(namespaces);
        working = true;
      });
    } catch (const std::exception& error) {
      log::error("{}", error.what());
      failed = true;
      ending.request_stop();
    }
    leading = false;
  }

  ManagerOptions options;
  telemetry::Metrics metrics;
  ControllerMetrics observer;
  std::atomic<bool> leading{false};
  std::atomic<TimePoint> led_since{TimePoint{}};
  std::atomic<bool> working{false};  // on a namespace at least
  std::mutex mutex;
  std::vector<std::string> unlisted;  // under it
  std::atomic<bool> failed{false};
  std::stop_source ending;
  std::unique_ptr<telemetry::StatusServer> server;
};

Manager::Manager(ManagerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Manager::~Manager() = default;
int Manager::status_port() const { return impl_->server->port(); }
telemetry::Metrics& Manager::metrics() { return impl_->metrics; }

Manager::End Manager::run(const std::stop_token& stop) {
  const ManagerOptions& options = impl_->options;
  const std::stop_callback end(stop, [this] { impl_->ending.request_stop(); });
  const std::stop_token ended = impl_->ending.get_token();
  if (!options.elect_leader) {
    impl_->lead(ended);
    return impl_->failed ? End::kLostLease : End::kStopped;
  }
  kube::LeaderElectionOptions election;
  election.lease = {options.lease_ns, options.lease_name};
  election.identity = options.identity;
  election.owners = [&options] { return lease_owners(options); };
  election.user_agent = std::string(kComponent);
  election.observer = &impl_->observer;
  kube::LeaderElection leader(options.api_server, election);
  const auto outcome = leader.run(
      ended, {.lead = [this](const std::stop_token& lease) { impl_->lead(lease); },
              .lost = [this] { impl_->failed = true; },
              .observed = [](const std::string& identity) { log::info("{} leads", identity); }});
  return outcome == kube::LeaderElection::Outcome::kLost || impl_->failed ? End::kLostLease
                                                                          : End::kStopped;
}

}  // namespace outrigger::controller
