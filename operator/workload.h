#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/run_policy.h"

/// A job's place in a queue of Kueue (kueue.x-k8s.io/v1beta1), as far as policies ask. Plain
/// values.
namespace outrigger::controller {

/// What pods get beside their template.
struct Placement {
  std::map<std::string, std::string> node_selector = {};
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};
  nlohmann::json tolerations = nlohmann::json::array();
  /// Name of the Workload, where Kueue chose racks or hosts (topology-aware scheduling): it puts
  /// each pod into its place and lets the scheduler have it then. Empty: the scheduler has it at
  /// once.
  std::string placed_by = {};

  /// Adds what is in `more`.
  void merge(const Placement& more);
};

/// The pods of one role.
struct PodSet {
  int wanted = 0;     // spec.podSets[].count
  int admitted = 0;   // what quota was reserved for, before anything was given back
  int reclaimed = 0;  // given back
  std::vector<std::string> flavors = {};
  bool topology = false;  // Kueue chose racks or hosts for them
  Placement added = {};   // by admission checks
};

/// What a queue asks beside quota, of whoever provisions nodes, say.
struct AdmissionCheck {
  std::string name;
  std::string state;  // Ready, Pending, Retry or Rejected
  std::string message = {};
};

/// The object that stands for a job in its queue.
struct Workload {
  std::string name;
  std::string uid;
  std::string version;
  std::string queue;
  bool active = true;  // false: Kueue does not look at it until somebody says so
  std::map<api::Role, PodSet> pod_sets = {};
  std::vector<AdmissionCheck> checks = {};
  nlohmann::json conditions = nlohmann::json::array();
};

/// What orders jobs in a queue.
struct PriorityClass {
  std::string name;
  int value = 0;
};

/// What is known of the queue that a job waits in.
struct QueueState {
  bool known = false;  // whether Workloads are followed: Kueue is there
  bool asked = false;  // ours was made a moment ago and does not show yet
  std::optional<Workload> workload = {};
  std::map<std::string, Placement> flavors = {};  // of the workload, where they could be read
  std::optional<PriorityClass> priority = {};     // the job's, else the cluster's default
  std::string problem = {};                       // why a flavor or the class could not be read
};

}  // namespace outrigger::controller
