#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "common/clock.h"
#include "kube/observer.h"
#include "operator/controller/caches.h"
#include "operator/plan.h"
#include "telemetry/metrics.h"

namespace outrigger::controller {

/// What the operator tells Prometheus: what every Go controller tells, under the same names, so
/// that dashboards and alerts work; and jobs by state, restarts by role and cause, the time to the
/// first step, and when jobs failed last. Only jobs that have started and not ended have series of
/// their own, so that their number follows the work and not the history. Thread-safe.
class ControllerMetrics final : public kube::Observer {
 public:
  /// `metrics` must outlive this.
  explicit ControllerMetrics(telemetry::Metrics& metrics);

  enum class Result { kSuccess, kRequeueAfter, kError };
  void reconciled(Result result, Duration took);
  void worker_is_busy(bool busy) { busy_workers_.add(busy ? 1 : -1); }
  void set_workers(int workers) { workers_.set(workers); }
  /// A plan whose status was written, and the job before it.
  void told(const api::TrainingJob& before, const Plan& plan);
  /// Counts jobs by state and workers, and tells how active ones are. On one thread.
  void count(const std::vector<kube::CachedPtr<JobRecord>>& jobs);
  /// How many lists of the resource have come, by its plural.
  size_t lists(const std::string& resource);
  /// Of how many namespaces the jobs wait, while this process leads.
  void set_unlisted(size_t namespaces) { unlisted_.set(static_cast<double>(namespaces)); }
  void polled(bool answered) { (answered ? polls_answered_ : polls_failed_).add(); }

  void request_finished(const Request& request) override;
  void request_retried(const Request& request) override;
  void queue_added(const std::string& queue) override;
  void queue_depth(const std::string& queue, size_t keys) override;
  void queue_waited(const std::string& queue, Duration waited) override;
  void queue_worked(const std::string& queue, Duration worked) override;
  void queue_retried(const std::string& queue) override;
  void queue_works(const std::string& queue, const Work& work) override;
  void listed(const std::string& resource, size_t objects, Duration took) override;
  void watched(const std::string& resource) override;
  void leader_changed(const std::string& lease, bool leading) override;
  void event_dropped() override { events_dropped_.add(); }

 private:
  struct ActiveJobs;
  /// Of requests with the same verb, answer and host.
  struct RequestMetrics {
    telemetry::Counter& count;
    telemetry::Histogram& time;
  };
  struct QueueMetrics {
    telemetry::Counter& adds;
    telemetry::Counter& retries;
    telemetry::Gauge& depth;
    telemetry::Histogram& wait;
    telemetry::Histogram& work;
    telemetry::Gauge& unfinished;
    telemetry::Gauge& longest;
  };
  const RequestMetrics& of(const Request& request);
  const QueueMetrics& of(const std::string& queue);
  telemetry::Counter& restarts(const RestartNote& like);
  void look_for_failure(const std::string& ns, const api::TrainingJobStatus& status);

  telemetry::Metrics& metrics_;
  std::mutex failures_mutex_;
  std::mutex found_mutex_;
  // What was asked for before; it stays where it is.
  std::map<std::tuple<std::string, std::string, std::string>, RequestMetrics, std::less<>>
      requests_;
  std::map<std::string, QueueMetrics> queues_;
  std::shared_ptr<ActiveJobs> active_;  // which the page asks when it is asked for
  telemetry::Gauge& busy_workers_;
  telemetry::Gauge& workers_;
  telemetry::Gauge& unlisted_;
  telemetry::Counter& polls_answered_;
  telemetry::Counter& polls_failed_;
  telemetry::Counter& events_dropped_;
  telemetry::Histogram& first_step_;
  telemetry::Histogram& reconcile_time_;
  std::map<Result, telemetry::Counter*> reconciles_;
};

}  // namespace outrigger::controller
