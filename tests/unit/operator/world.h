#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/observed.h"
#include "operator/options.h"
#include "operator/plan.h"

namespace outrigger::controller {

using std::chrono::seconds;

/// A job and its cluster in memory: carries out what plans say as an API server would, and does on
/// demand what scheduler, kubelets and people do. Owns its clock.
class World {
 public:
  /// The sample job with `more` added to its spec (indented by two).
  explicit World(const std::string& more = "");

  Observed observe() const;
  Plan look() const;
  /// One pass: plan, carry out all of it, write the status.
  Plan pass();
  /// Passes until one changes nothing, without time going by. Returns all events in between.
  std::vector<Event> settle();
  /// Carries out the first `count` actions of a plan; then the operator is gone.
  void carry_out(const Plan& plan, size_t count);
  void write_status(const Plan& plan);

  void advance(seconds time) { now += time; }
  /// Every living pod is placed, runs and is ready.
  void run_all();
  void run(const std::string& pod);
  /// It runs, and is not ready (any more).
  void unready(const std::string& pod);
  struct End {
    int code = 0;
    std::string reason = "Error";
    std::string message = {};
  };
  void end(const std::string& pod, const End& how);
  /// The kubelets end what is to be deleted, but on nodes in `dead`.
  void finish_deletions();
  /// As `kubectl delete pod`.
  void ask_to_delete(const std::string& pod);
  /// As a drain or the scheduler; it ends at once.
  void disrupt(const std::string& pod);
  void vanish(const std::string& pod) { pods.erase(pod); }
  void add_condition(const std::string& pod, const Json& condition);
  void wait_in(const std::string& pod, const std::string& reason);

  api::TrainingJobStatus& status() { return *job.status; }
  api::TrainingJobSpec& spec() { return job.spec; }
  /// "True/Reason", "False/Reason"; empty where there is no such condition.
  std::string condition(const std::string& type) const;
  /// Names of pods, by name; of one role, or all.
  std::vector<std::string> names(const std::string& role = "") const;
  std::vector<std::string> living(const std::string& role) const;

  api::TrainingJob job;
  Options options;
  api::Time now;
  std::map<std::string, Json> pods;
  std::map<std::string, Json> others;  // "Service/faces-server"
  std::vector<std::string> unknown;    // fields of spec
  std::vector<api::FieldError> errors;
  bool only_for_servers = false;  // those errors
  std::vector<Refusal> refusals;
  std::map<std::string, NodeState> nodes;
  std::optional<ServerReport> report;
  std::vector<WorkerDemand> demand;
  std::set<std::string> dead;            // nodes whose kubelet is silent
  QueueState queue;                      // but for the Workload, which is among `others`
  std::optional<api::Time> secret_made;  // which nobody reads
  bool job_deleted = false;
  int already_exists = 0;  // creates of what was there
};

/// The sample job, with `more` added to its spec, whose pods are all there and ready.
World running(const std::string& more = "");

}  // namespace outrigger::controller
