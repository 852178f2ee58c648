#include "operator/controller/metrics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "api/names.h"
#include "operator/names.h"
#include "operator/policy/conditions.h"
#include "operator/policy/failures.h"

namespace outrigger::controller {
namespace {

using telemetry::HistogramInfo;
using telemetry::MetricInfo;

constexpr const char* kController = "trainingjob";

// The bounds that controller-runtime and client-go use, thinned out.
const std::vector<double> kReconcileBounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
const std::vector<double> kQueueBounds{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};
const std::vector<double> kRequestBounds{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
const std::vector<double> kFirstStepBounds{5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600};

const MetricInfo kReconciles{
    "controller_runtime_reconcile_total", "Reconciliations by result.", {"controller", "result"}};
const MetricInfo kReconcileErrors{
    "controller_runtime_reconcile_errors_total", "Reconciliations that failed.", {"controller"}};
const HistogramInfo kReconcileTime{
    {"controller_runtime_reconcile_time_seconds", "Time of a reconciliation.", {"controller"}},
    kReconcileBounds};
const MetricInfo kBusyWorkers{
    "controller_runtime_active_workers", "Threads that reconcile now.", {"controller"}};
const MetricInfo kWorkers{
    "controller_runtime_max_concurrent_reconciles", "Threads that may reconcile.", {"controller"}};
const MetricInfo kRequests{"rest_client_requests_total",
                           "Requests to the API server by answer.",
                           {"code", "method", "host"}};
const HistogramInfo kRequestTime{{"rest_client_request_duration_seconds",
                                  "Time of a request to the API server.",
                                  {"verb", "host"}},
                                 kRequestBounds};
const MetricInfo kRequestRetries{"rest_client_request_retries_total",
                                 "Requests to the API server that were sent again.",
                                 {"code", "verb", "host"}};
const MetricInfo kQueueAdds{"workqueue_adds_total", "Keys added to a queue.", {"name"}};
const MetricInfo kQueueDepth{"workqueue_depth", "Keys in a queue.", {"name"}};
const MetricInfo kQueueRetries{"workqueue_retries_total", "Keys that are tried again.", {"name"}};
const HistogramInfo kQueueWait{
    {"workqueue_queue_duration_seconds", "Time that a key waits in a queue.", {"name"}},
    kQueueBounds};
const HistogramInfo kQueueWork{
    {"workqueue_work_duration_seconds", "Time that a key is worked on.", {"name"}}, kQueueBounds};
const MetricInfo kUnfinishedWork{"workqueue_unfinished_work_seconds",
                                 "How long the keys worked on now have been, all together.",
                                 {"name"}};
const MetricInfo kLongestWork{"workqueue_longest_running_processor_seconds",
                              "How long the key worked on for longest has been.",
                              {"name"}};
const MetricInfo kLists{"reflector_lists_total", "Lists of a resource.", {"name"}};
const MetricInfo kWatches{"reflector_watches_total", "Watches of a resource.", {"name"}};
const MetricInfo kLeader{
    "leader_election_master_status", "1 while this process leads, else 0.", {"name"}};
const MetricInfo kJobs{"outrigger_jobs", "TrainingJobs by state.", {"state"}};
// Of one active job; "job" and "namespace" are Prometheus' own labels of what it scrapes.
const MetricInfo kJobProgress{"outrigger_job_progress_ratio",
                              "How much of an active job is done.",
                              {"job_namespace", "job_name"}};
const MetricInfo kJobStall{"outrigger_job_stall_ratio",
                           "Part of its time that an active job's device waits.",
                           {"job_namespace", "job_name"}};
const MetricInfo kJobRestarts{"outrigger_job_restarts",
                              "Restarts of an active job that counted.",
                              {"job_namespace", "job_name"}};
const MetricInfo kJobWorkers{
    "outrigger_workers", "Workers of active jobs, desired and ready.", {"state"}};
const MetricInfo kRestarts{"outrigger_job_restarts_total",
                           "Restarts of jobs, by the role that failed and why.",
                           {"role", "cause", "counted"}};
const MetricInfo kFinished{"outrigger_jobs_finished_total", "Jobs that ended, by how.", {"result"}};
const MetricInfo kUnlisted{"outrigger_unlisted_namespaces",
                           "Namespaces that this process, which leads, could not list yet.",
                           {}};
const MetricInfo kPolls{
    "outrigger_status_polls_total", "Questions to servers' status pages.", {"result"}};
const MetricInfo kEventsDropped{
    "outrigger_events_dropped_total", "Events that were not sent to spare the API server.", {}};
const MetricInfo kLastFailure{"outrigger_job_last_failure_timestamp_seconds",
                              "When a TrainingJob of the namespace failed last.",
                              {"job_namespace"}};
const HistogramInfo kFirstStep{
    {"outrigger_job_first_step_seconds", "Time from a job's start to its first step.", {}},
    kFirstStepBounds};

// Whether it has started and not ended.
bool is_active(const api::TrainingJobStatus& status) {
  return status.start_time && !status.completion_time;
}

constexpr std::array kStates{"Pending",    "Queued",    "Starting", "Running", "Restarting",
                             "Suspending", "Suspended", "Complete", "Failed"};

}  // namespace

/// What is told of each active job.
struct ControllerMetrics::ActiveJobs {
  struct Job {
    kube::ObjectKey key;
    double progress = 0;
    double stall = 0;
    double restarts = 0;
  };

  void set(const std::vector<kube::CachedPtr<JobRecord>>& all) {
    std::vector<Job> active;
    for (const auto& job : all) {
      const auto& status = *job->value.job.status;
      if (!is_active(status)) continue;
      active.push_back({job->key, status.progress ? status.progress->percent / 100.0 : 0,
                        status.split ? status.split->stall_percent / 100.0 : 0,
                        static_cast<double>(status.restarts)});
    }
    const std::scoped_lock lock(mutex);
    jobs = std::move(active);
  }

  std::vector<telemetry::Sample> samples(double Job::*what) {
    const std::scoped_lock lock(mutex);
    std::vector<telemetry::Sample> all;
    for (const Job& job : jobs)
      all.push_back({{{"job_namespace", job.key.ns}, {"job_name", job.key.name}}, job.*what});
    return all;
  }

  std::mutex mutex;
  std::vector<Job> jobs;
};

ControllerMetrics::ControllerMetrics(telemetry::Metrics& metrics)
    : metrics_(metrics),
      active_(std::make_shared<ActiveJobs>()),
      busy_workers_(metrics.gauge(kBusyWorkers, {{"controller", kController}})),
      workers_(metrics.gauge(kWorkers, {{"controller", kController}})),
      unlisted_(metrics.gauge(kUnlisted)),
      polls_answered_(metrics.counter(kPolls, {{"result", "answered"}})),
      polls_failed_(metrics.counter(kPolls, {{"result", "failed"}})),
      events_dropped_(metrics.counter(kEventsDropped)),
      first_step_(metrics.histogram(kFirstStep)),
      reconcile_time_(metrics.histogram(kReconcileTime, {{"controller", kController}})) {
  for (const char* state : kStates) metrics_.gauge(kJobs, {{"state", state}});
  for (const auto& result : {api::kConditionComplete, api::kConditionFailed})
    metrics_.counter(kFinished, {{"result", std::string(result)}});
  // A series that begins at 1 hides its first restart from increase().
  for (const RestartNote& restart : usual_restarts()) restarts(restart);
  metrics_.counter(kReconcileErrors, {{"controller", kController}});
  for (const auto& [result, name] :
       {std::pair(Result::kSuccess, "success"), std::pair(Result::kRequeueAfter, "requeue_after"),
        std::pair(Result::kError, "error")})
    reconciles_[result] =
        &metrics_.counter(kReconciles, {{"controller", kController}, {"result", name}});
  const auto tell = [&](const MetricInfo& info, double ActiveJobs::Job::*what) {
    metrics.gauge_of(info, [active = active_, what] { return active->samples(what); });
  };
  tell(kJobProgress, &ActiveJobs::Job::progress);
  tell(kJobStall, &ActiveJobs::Job::stall);
  tell(kJobRestarts, &ActiveJobs::Job::restarts);
}

void ControllerMetrics::reconciled(Result result, Duration took) {
  reconciles_.at(result)->add();
  if (result == Result::kError)
    metrics_.counter(kReconcileErrors, {{"controller", kController}}).add();
  reconcile_time_.observe(to_seconds(took));
}

telemetry::Counter& ControllerMetrics::restarts(const RestartNote& like) {
  return metrics_.counter(kRestarts, {{"role", std::string(role_name(like.role))},
                                      {"cause", like.cause},
                                      {"counted", like.counted ? "true" : "false"}});
}

void ControllerMetrics::told(const api::TrainingJob& before, const Plan& plan) {
  look_for_failure(before.metadata.namespace_name, plan.status);
  if (plan.restart) restarts(*plan.restart).add();
  if (plan.status.completion_time && !(before.status && before.status->completion_time)) {
    const bool failed = is_true(plan.status, api::kConditionFailed);
    const auto& result = failed ? api::kConditionFailed : api::kConditionComplete;
    metrics_.counter(kFinished, {{"result", std::string(result)}}).add();
  }
  const auto stepped = [](const api::TrainingJobStatus& status) {
    return status.progress && status.progress->step > 0;
  };
  const bool first = before.status && !stepped(*before.status) && stepped(plan.status);
  if (first && plan.status.start_time && plan.status.progress->updated_time)
    first_step_.observe(to_seconds(*plan.status.progress->updated_time - *plan.status.start_time));
}

// Only ever later, whatever is deleted meanwhile.
void ControllerMetrics::look_for_failure(const std::string& ns,
                                         const api::TrainingJobStatus& status) {
  if (!status.completion_time || !is_true(status, api::kConditionFailed)) return;
  const auto at = static_cast<double>(status.completion_time->time_since_epoch().count());
  const std::scoped_lock lock(failures_mutex_);
  auto& gauge = metrics_.gauge(kLastFailure, {{"job_namespace", ns}});
  gauge.set(std::max(gauge.value(), at));
}

void ControllerMetrics::count(const std::vector<kube::CachedPtr<JobRecord>>& jobs) {
  std::map<std::string, int> states;
  int desired = 0;
  int ready = 0;
  for (const auto& job : jobs) {
    const auto& status = *job->value.job.status;
    look_for_failure(job->key.ns, status);
    ++states[status.state.empty() ? "Pending" : status.state];
    if (!is_active(status)) continue;
    for (const auto& role : status.roles) {
      if (role.name != role_name(api::Role::kWorker)) continue;
      desired += role.desired;
      ready += role.ready;
    }
  }
  for (const char* state : kStates) metrics_.gauge(kJobs, {{"state", state}}).set(states[state]);
  metrics_.gauge(kJobWorkers, {{"state", "desired"}}).set(desired);
  metrics_.gauge(kJobWorkers, {{"state", "ready"}}).set(ready);
  active_->set(jobs);
}

const ControllerMetrics::RequestMetrics& ControllerMetrics::of(const Request& request) {
  const auto& [verb, host, code, duration] = request;
  const std::scoped_lock lock(found_mutex_);
  const auto found = requests_.find(std::tie(verb, host, code));
  if (found != requests_.end()) return found->second;
  const RequestMetrics made{
      metrics_.counter(kRequests, {{"code", code}, {"method", verb}, {"host", host}}),
      metrics_.histogram(kRequestTime, {{"verb", verb}, {"host", host}})};
  return requests_.emplace(std::tuple(verb, host, code), made).first->second;
}

const ControllerMetrics::QueueMetrics& ControllerMetrics::of(const std::string& queue) {
  const std::scoped_lock lock(found_mutex_);
  const auto found = queues_.find(queue);
  if (found != queues_.end()) return found->second;
  const telemetry::Labels labels{{"name", queue}};
  const QueueMetrics made{
      metrics_.counter(kQueueAdds, labels),   metrics_.counter(kQueueRetries, labels),
      metrics_.gauge(kQueueDepth, labels),    metrics_.histogram(kQueueWait, labels),
      metrics_.histogram(kQueueWork, labels), metrics_.gauge(kUnfinishedWork, labels),
      metrics_.gauge(kLongestWork, labels)};
  return queues_.emplace(queue, made).first->second;
}

void ControllerMetrics::request_finished(const Request& request) {
  const RequestMetrics& metrics = of(request);
  metrics.count.add();
  metrics.time.observe(to_seconds(request.duration));
}

void ControllerMetrics::request_retried(const Request& request) {
  metrics_
      .counter(kRequestRetries,
               {{"code", request.code}, {"verb", request.verb}, {"host", request.host}})
      .add();
}

void ControllerMetrics::queue_added(const std::string& queue) { of(queue).adds.add(); }
void ControllerMetrics::queue_retried(const std::string& queue) { of(queue).retries.add(); }
void ControllerMetrics::queue_depth(const std::string& queue, size_t keys) {
  of(queue).depth.set(static_cast<double>(keys));
}
void ControllerMetrics::queue_waited(const std::string& queue, Duration waited) {
  of(queue).wait.observe(to_seconds(waited));
}
void ControllerMetrics::queue_worked(const std::string& queue, Duration worked) {
  of(queue).work.observe(to_seconds(worked));
}
void ControllerMetrics::queue_works(const std::string& queue, const Work& work) {
  const QueueMetrics& metrics = of(queue);
  metrics.unfinished.set(to_seconds(work.unfinished));
  metrics.longest.set(to_seconds(work.longest));
}
size_t ControllerMetrics::lists(const std::string& resource) {
  return static_cast<size_t>(metrics_.counter(kLists, {{"name", resource}}).value());
}
void ControllerMetrics::listed(const std::string& resource, size_t /*objects*/, Duration /*took*/) {
  metrics_.counter(kLists, {{"name", resource}}).add();
}
void ControllerMetrics::watched(const std::string& resource) {
  metrics_.counter(kWatches, {{"name", resource}}).add();
}
void ControllerMetrics::leader_changed(const std::string& lease, bool leading) {
  metrics_.gauge(kLeader, {{"name", lease}}).set(leading ? 1 : 0);
}

}  // namespace outrigger::controller
