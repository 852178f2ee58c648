#include "operator/controller/shift.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "api/names.h"
#include "common/error.h"
#include "common/log.h"
#include "kube/client/api_error.h"
#include "operator/controller/resources.h"
#include "operator/names.h"
#include "operator/policy/haste.h"

namespace outrigger::controller {
namespace {

constexpr std::chrono::seconds kBetweenCounts{5};
// At a job of a namespace that is not in the caches yet.
constexpr std::chrono::seconds kBetweenLooks{1};

kube::ClientOptions client_options(ControllerMetrics& metrics) {
  kube::ClientOptions options;
  options.user_agent = std::string(kComponent);
  options.observer = &metrics;
  options.dropped = kUnread;
  return options;
}

kube::EventRecorderOptions event_options(const ManagerOptions& options, ControllerMetrics& metrics,
                                         const std::stop_source& end) {
  kube::EventRecorderOptions events;
  events.give_up = end;
  events.controller = "outrigger.dev/operator";
  events.instance = options.identity;
  events.observer = &metrics;
  return events;
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

}  // namespace

Shift::Shift(const ManagerOptions& options, ControllerMetrics& metrics, const std::stop_token& stop)
    : options_(options),
      metrics_(metrics),
      client_(options.api_server, client_options(metrics), stop),
      events_client_(options.api_server, client_options(metrics), events_end_.get_token()),
      caches_(client_, options.namespaces,
              [this](const std::string& job_key, const std::string& version) {
                const auto memory = memory_.find(job_key);
                return memory ? memory->own_write(version) : nullptr;
              }),
      events_(events_client_, event_options(options, metrics, events_end_)),
      reconciler_(client_, caches_, memory_, events_, metrics, options.jobs),
      queue_(queue_options(metrics)),
      poller_({.period = options.poll_period,
               .ask = options.ask,
               .tell = [this](const std::string& job_key, const Edit& edit,
                              const std::stop_token& ended) { tell_server(job_key, edit, ended); }},
              metrics, [this](const std::string& job_key, const ServerReport& report) {
                return heard(job_key, report);
              }) {
  caches_.on_pod_gone([this](const std::string& job_key, const std::string& uid) {
    if (const auto memory = memory_.find(job_key)) memory->pod_is_gone(uid, SystemClock().now());
  });
  caches_.on_child_gone([this](const std::string& job_key, const GoneChild& gone) {
    if (const auto memory = memory_.find(job_key)) memory->child_is_gone(gone);
  });
  caches_.on_new_child([this](const std::string& job_key, const std::string& child, int number) {
    const auto memory = memory_.find(job_key);
    if (memory && !memory->is_own_write(child, number))
      queue_.add_after(job_key, gathering_time(queue_.size()));
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

void Shift::run(const std::stop_token& stop, const Listener& tell) {
  const auto tell_of = [&](bool working) { tell({working, caches_.unlisted()}); };
  caches_.start();
  if (caches_.wait_for_sync(stop, [&] { tell_of(false); })) {
    log::info("{} jobs are known; working", caches_.jobs().size());
    poller_.start();
    std::vector<std::jthread> threads;
    for (int i = 0; i < options_.workers; ++i) threads.emplace_back([this, &stop] { work(stop); });
    while (!stop.stop_requested()) {
      tell_of(true);
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
    tell_of_refused_edit(
        *job, report.edit_refused + "; its next attempt may begin with this spec: edit it again");
  return std::nullopt;
}

void Shift::tell_server(const std::string& job_key, const Edit& edit, const std::stop_token& stop) {
  if (options_.tell(edit, stop)) return;
  const auto memory = memory_.find(job_key);
  const auto job = caches_.job(kube::ObjectKey::parse(job_key));
  if (!memory || !job || job->uid != memory->uid()) return;
  if (memory->first_refusal_of(job->value.job.metadata.generation.value_or(0)))
    tell_of_refused_edit(*job,
                         "the job's tokens are of an operator with another token key, so its "
                         "server takes no edits while it runs; "
                         "suspend and resume the job: its next attempt has this spec");
}

void Shift::tell_of_refused_edit(const kube::Cached<JobRecord>& job, const std::string& why) {
  log::info("{}: its server refuses the edit: {}", job.key.text(), why);
  events_.record({std::string(api::kApiVersion), std::string(api::kKind), job.key, job.uid,
                  job.resource_version},
                 {kube::EventType::kWarning, "EditRefused", "TellServer", why});
}

}  // namespace outrigger::controller
