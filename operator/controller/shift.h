#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/client/client.h"
#include "kube/control/events.h"
#include "kube/control/work_queue.h"
#include "operator/controller/caches.h"
#include "operator/controller/manager.h"
#include "operator/controller/memory.h"
#include "operator/controller/metrics.h"
#include "operator/controller/poller.h"
#include "operator/controller/reconciler.h"

namespace outrigger::controller {

/// Everything that runs while this process leads.
class Shift {
 public:
  /// References must outlive this.
  Shift(const ManagerOptions& options, ControllerMetrics& metrics, const std::stop_token& stop);
  /// How far it is with the namespaces.
  struct Reach {
    bool working = false;               // on one at least
    std::vector<std::string> unlisted;  // not in the caches yet; "" is all
  };
  using Listener = std::function<void(Reach reach)>;
  /// Returns when `stop` is requested and nothing runs any more. `tell` is called all the while,
  /// every few seconds at least.
  void run(const std::stop_token& stop, const Listener& tell);

 private:
  void work(const std::stop_token& stop);
  void work_on(const std::string& job_key);
  /// What the server is to be told that reports.
  std::optional<Edit> heard(const std::string& job_key, const ServerReport& report);
  void tell_server(const std::string& job_key, const Edit& edit, const std::stop_token& stop);
  void tell_of_refused_edit(const kube::Cached<JobRecord>& job, const std::string& why);

  const ManagerOptions& options_;
  ControllerMetrics& metrics_;
  kube::Client client_;
  // Events of the last moments are sent when all else has stopped.
  std::stop_source events_end_;
  kube::Client events_client_;
  Memory memory_;
  Caches caches_;
  kube::EventRecorder events_;
  Reconciler reconciler_;
  kube::WorkQueue queue_;
  Poller poller_;
};

}  // namespace outrigger::controller
