#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "kube/client/client.h"
#include "kube/control/events.h"
#include "kube/control/work_queue.h"
#include "operator/controller/caches.h"
#include "operator/controller/memory.h"
#include "operator/controller/metrics.h"
#include "operator/options.h"
#include "operator/plan.h"

namespace outrigger::controller {

/// Brings one job's world a step nearer to what its spec says: observe, plan, apply, write the
/// status. Thread-safe, for different jobs at a time.
class Reconciler {
 public:
  /// Wall-clock time; a test's own.
  using WallClock = std::function<api::Time()>;
  static api::Time system_time();

  /// All references must outlive this.
  Reconciler(kube::Client& client, const Caches& caches, Memory& memory,
             kube::EventRecorder& events, ControllerMetrics& metrics, Options options,
             WallClock clock = system_time);

  struct Outcome {
    /// When to look again at the latest; nothing: when something changes.
    std::optional<Duration> again;
    /// Of that look; low where there will only be numbers to write.
    kube::Priority priority = kube::Priority::kNormal;
    /// Where the first server's status page is; empty: nobody to ask.
    std::string server_ip;
  };
  /// Throws kube::ApiError or IoError for what may go better later.
  Outcome reconcile(const std::string& job_key);

 private:
  Observed observe(const JobRecord& record, const std::string& job_key, JobMemory& memory,
                   api::Time now);
  void ask_unseen_pods(const std::vector<kube::CachedPtr<PodRecord>>& cached, const std::string& ns,
                       JobMemory& memory);
  std::optional<std::string> ask_former_file(const Observed& seen);
  void ask_nodes(Observed& seen, api::Time now);
  void look_at_queue(Observed& seen, const std::string& job_key, JobMemory& memory);
  void ask_priority(Observed& seen);
  void ask_default_priority(Observed& seen);
  void ask_flavors(Observed& seen, JobMemory& memory);
  /// Carries out the plan as far as it goes; false where it did not go to its end. A first attempt
  /// that stops half-way is told of then: deadlines count from it, and people see that it began.
  bool carry_out(const kube::Cached<JobRecord>& job, const Plan& plan, JobMemory& memory,
                 Outcome& outcome);
  /// False where somebody else wrote the job meanwhile.
  bool write_status(const kube::Cached<JobRecord>& job, const Plan& plan, JobMemory& memory);
  /// After a conflict: whether it was our own write, whose answer was lost.
  bool is_written(const kube::Cached<JobRecord>& job, const Plan& plan, JobMemory& memory);
  void tell(const kube::Cached<JobRecord>& job, const Plan& plan);

  kube::Client& client_;
  const Caches& caches_;
  Memory& memory_;
  kube::EventRecorder& events_;
  ControllerMetrics& metrics_;
  const Options options_;
  const WallClock clock_;
};

}  // namespace outrigger::controller
