#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/client/config.h"
#include "operator/controller/poller.h"
#include "operator/options.h"
#include "telemetry/metrics.h"

namespace outrigger::controller {

/// Ends this process at once, as one whose lease is lost.
void end_process();

struct ManagerOptions {
  kube::Config api_server;
  /// The namespaces whose jobs are run; empty: all.
  std::vector<std::string> namespaces = {};
  /// Jobs that are worked on at a time.
  int workers = 16;
  /// Where health, readiness, metrics and status are shown.
  std::string listen = "0.0.0.0";
  int status_port = 8080;
  /// Where health and readiness are shown beside: whoever is slow at the status port, which answers
  /// anybody, holds up no probe there. Absent: nowhere.
  std::optional<int> health_port = {};
  /// With it, one of several processes works and the others wait.
  bool elect_leader = true;
  std::string lease_ns = {};
  std::string lease_name = "outrigger-operator";
  std::string identity = {};
  Options jobs = {};
  /// How servers are asked, as in PollerOptions; a test's own.
  std::function<std::optional<std::string>(const std::string& ip, const std::stop_token& stop)>
      ask = ask_status;
  /// How they are told of edits; false: the server does not know the token.
  std::function<bool(const Edit& edit, const std::stop_token& stop)> tell = tell_job;
  Duration poll_period = std::chrono::seconds(10);
  /// Whoever lost the lease and has not come to an end after so long gives up; less than others
  /// wait from its deadline on (LeaderElectionOptions: lease_duration less renew_deadline).
  Duration longest_end = std::chrono::seconds(4);
  /// How it does so; a test's own.
  std::function<void()> give_up = end_process;
  /// A leader that still lacks what it must know of the cluster after so long is not ready.
  Duration longest_fill = std::chrono::seconds(60);
};

/// The operator: wires client, caches, queue, reconciler, poller and leader election together.
class Manager {
 public:
  /// Binds the status port. Throws InvalidInput, IoError.
  explicit Manager(ManagerOptions options);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  enum class End { kStopped, kLostLease };
  /// Works until `stop` is requested, then gives the lease back; or until the lease is lost.
  End run(const std::stop_token& stop);
  int status_port() const;
  /// Only with ManagerOptions::health_port.
  int health_port() const;
  telemetry::Metrics& metrics();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::controller
