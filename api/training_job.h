#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/data.h"
#include "api/model.h"
#include "api/roles.h"
#include "api/run_policy.h"
#include "api/status.h"
#include "api/time.h"
#include "api/training.h"

namespace outrigger::api {

/// What Kubernetes keeps about the object. Only `name` matters on one machine; the rest is carried
/// along.
struct Metadata {
  std::string name;
  std::string namespace_name;  // "namespace"; empty: not given
  std::string uid;
  std::string resource_version;
  std::optional<int64_t> generation;
  std::optional<Time> creation_time;
  std::optional<Time> deletion_time;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> finalizers;
  std::vector<nlohmann::json> owner_references;
  std::vector<nlohmann::json> managed_fields;
  bool operator==(const Metadata&) const = default;
};

/// `spec`: what the user wants. Default-constructed it is not valid (a model, data, … are the
/// user's to say).
struct TrainingJobSpec {
  bool suspend = false;
  std::string managed_by = "outrigger.dev/operator";  // kManagedByOperator
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  SplitSpec split;
  ServerSpec server;
  WorkersSpec workers;
  NetworkSpec network;
  OutputSpec output;
  CheckpointSpec checkpoint;
  FailurePolicy failure_policy;
  std::optional<SchedulingPolicy> scheduling_policy;
  std::optional<std::chrono::seconds> active_deadline;  // absent: none
  std::chrono::seconds startup_deadline{1800};
  std::chrono::seconds progress_deadline{900};
  std::optional<std::chrono::seconds> ttl_after_finished;  // absent: the job is kept
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  bool operator==(const TrainingJobSpec&) const = default;
};

/// One job, as a file or the API server has it. A plain value. Made by parse.h, filled up by
/// defaults.h, judged by validate.h and support.h, written by write.h; the fields and their rules
/// are listed in docs/fields.md.
struct TrainingJob {
  Metadata metadata;
  TrainingJobSpec spec;
  std::optional<TrainingJobStatus> status;
  bool operator==(const TrainingJob&) const = default;
};

/// Processes that take part in the all-reduce: replicas x max(1, gpus).
int rank_count(const TrainingJobSpec& spec);
/// Those of one pod of our own server, each a process with a GPU: max(1, gpus). A server of the
/// user's (engine External) is one process to us.
int ranks_per_pod(const TrainingJobSpec& spec);

}  // namespace outrigger::api
