#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/field_error.h"
#include "api/run_policy.h"
#include "api/time.h"
#include "api/training_job.h"
#include "common/boxed.h"
#include "common/shared_text.h"
#include "operator/condition_types.h"
#include "operator/workload.h"

/// What the operator knows of one job and its world when it plans. Plain values.
namespace outrigger::controller {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

/// How a container ended.
struct Ended {
  int exit_code = 0;
  std::string reason;   // "OOMKilled", "Error", "Completed", …
  std::string message;  // the termination message
  std::optional<api::Time> at;
};

/// Why a pod is not running yet, or ended.
struct Why {
  std::string reason;  // "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", …
  std::string message;
};

/// A pod but for who it is: what a cache of thousands keeps of each.
struct PodState {
  SharedText node;     // empty: not placed yet
  SharedText job_uid;  // of the owner; another's is a leftover of a job of the same name
  api::Role role = api::Role::kServer;
  int index = 0;
  int number = 0;  // at the end of the name
  int attempt = 0;
  int failures = 0;  // kFailuresAnnotation
  PodPhase phase = PodPhase::kPending;
  bool ready = false;  // our container, whatever others do
  std::string ip;
  SharedText image_id;  // of our container, once it runs
  std::optional<api::Time> created;
  std::optional<api::Time> taken;     // by the kubelet of its node; of a server only
  std::optional<api::Time> started;   // our container
  std::optional<api::Time> deleting;  // the end of the grace it was given
  ConditionTypes conditions;          // such as DisruptionTarget
  Boxed<Why> ended_for;    // what the pod says: "Evicted", "UnexpectedAdmissionError", …
  Boxed<Why> unscheduled;  // why no node was found
  Boxed<Why> waiting;      // the first container that cannot start
  Boxed<Ended> ended;      // our container, whatever others do
  bool runs = false;       // one of its containers does, whatever the phase says
};

struct Pod : PodState {
  std::string name;
  std::string uid;
};

/// A node of a pod that should be gone by now.
struct NodeState {
  bool exists = true;
  bool out_of_service = false;  // tainted node.kubernetes.io/out-of-service
};

/// What the API server refused to create, and why; forgotten once tried again.
enum class RefusalCause {
  kInvalid,      // 422
  kPodSecurity,  // 403 of the PodSecurity admission
  kQuota,        // 403: the namespace's quota is used up
  kForeign,      // an object of that name is not ours
  kLeftover,     // an object of that name belongs to a former job of this name and goes
  kNamespaceEnds,
  kForbidden,  // any other 403
  kOther,
};

struct Refusal {
  std::string object;  // "pod faces-server-0-0"
  std::optional<api::Role> role;
  RefusalCause cause = RefusalCause::kOther;
  std::string message;  // the server's text
  api::Time at;
  std::chrono::seconds patience{15};  // before it is asked again
};

/// What a server's status page said.
struct ServerReport {
  api::ProgressStatus progress;
  std::optional<api::SplitStatus> split;
  std::optional<int64_t> checkpoint_step;
  std::optional<int> desired_workers;      // that it can use, all ranks together
  std::optional<int64_t> told_generation;  // of the newest job told to it; absent: it takes none
  std::string edit_refused;                // why it did not take that one; empty: it did
};

/// What a report said about workers.
struct WorkerDemand {
  api::Time at;
  std::optional<int> desired;  // nothing: no worker has joined that others could be likened to
  std::optional<int> stall_percent;  // how much of its time the device waits
};

struct ServiceState {
  int attempt = 0;  // whose servers it names
  std::string uid;  // empty: made a moment ago
};

struct ConfigMapState {
  std::string name;
  std::string uid;  // likewise
};

struct Observed {
  api::TrainingJob job;  // with the status last written
  /// Why spec cannot be run as it is; empty: it can.
  std::vector<api::FieldError> errors = {};
  bool only_invalid = false;              // all of spec was read; fields do not go together
  bool only_for_servers = false;          // what could not be read is for servers alone
  std::vector<std::string> unknown = {};  // fields of spec that this operator does not know
  std::vector<Pod> pods = {};
  std::optional<ServiceState> service = {};
  std::map<int, ConfigMapState> config_maps = {};  // by attempt
  /// The job file that the attempt before this one was given; where `file_wanted` says so and it
  /// is there yet.
  std::optional<std::string> former_file = {};
  std::optional<int> network_policy = {};  // the ranks of a pod that it is for; 0: it does not say
  /// Since this process made the attempt's Secret, or found it there when making it. Nobody reads
  /// one: it may be gone by now.
  std::optional<std::chrono::seconds> secret_age = {};
  std::vector<Refusal> refusals = {};
  std::map<std::string, NodeState> nodes = {};  // of `nodes_wanted`, where they could be asked
  std::optional<ServerReport> report = {};
  std::vector<WorkerDemand> demand = {};  // of the reports so far, the oldest first
  QueueState queue = {};
};

}  // namespace outrigger::controller
