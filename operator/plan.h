#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/status.h"
#include "operator/observed.h"
#include "operator/options.h"

namespace outrigger::controller {

using Json = nlohmann::json;

enum class ObjectKind {
  kPod,
  kService,
  kConfigMap,
  kSecret,
  kNetworkPolicy,
  kWorkload,
  kTrainingJob
};

/// An object as it is sent, and of it what is asked for besides: kind, name, namespace, labels and
/// a pod's nodeName. The tree of a pod is ten times as large as its text, and plans have many.
struct Create {
  Create(ObjectKind what, Json object);

  ObjectKind kind;
  Json head;
  std::string text;
  /// Of a Secret, which nobody reads: there are pods that want it, and it was made before them.
  bool likely_there = false;
};
struct Remove {
  ObjectKind kind = ObjectKind::kPod;
  std::string name;
  std::string uid;                            // nothing else of that name is deleted
  std::optional<std::chrono::seconds> grace;  // absent: the object's own; 0 takes it out of the
                                              // API without asking its node
  std::string why;
};
/// A merge patch.
struct Patch {
  ObjectKind kind = ObjectKind::kService;
  std::string name;
  Json patch;
  std::string subresource = {};  // "status"; empty: the object itself
};
/// Writes spec.workers.replicas as `kubectl scale` does, if the job is still as it was observed.
struct Scale {
  int replicas = 0;
};
using Action = std::variant<Create, Remove, Patch, Scale>;

/// Told to people once the status that it comes with is written.
struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
};

/// For metrics.
struct RestartNote {
  api::Role role = api::Role::kServer;
  std::string cause;
  bool counted = false;
};

/// What to do now. Actions are carried out in their order, as far as they go; then the status is
/// written, where it differs, in the resource version that was observed.
///
/// Whatever must not be lost or done twice goes into the status in a pass of its own, which has no
/// actions: a restart is counted before the first pod of the former attempt is deleted, and a job
/// has ended before its pods are cleaned up. So a crash between any two actions changes nothing.
/// Such a plan is unfinished; any other leaves nothing to do for a pass that only sees its status.
/// A job's first attempt needs no such pass: there is nothing that it could be mistaken for, and
/// its objects tell a pass that finds no status that it has begun.
struct Plan {
  std::vector<Action> actions;
  api::TrainingJobStatus status;
  std::vector<Event> events;
  std::optional<RestartNote> restart;
  bool unfinished = false;              // the rest is the next pass's, once the status is written
  bool begins = false;                  // the first attempt: its objects come before the status
  std::optional<api::Time> look_again;  // absent: when something changes
};

/// Of a job that spec.managedBy gives to somebody else nothing is done and nothing told.
/// Pure: the same for equal arguments. `now` is this machine's wall clock.
Plan plan(const Observed& seen, const Options& options, api::Time now);

/// Name of the ConfigMap whose job file `plan` hands on to the attempt that begins: of spec, this
/// operator understands only a part, and the servers' image, which a restart keeps, may all of it.
/// Nothing: none.
std::optional<std::string> file_wanted(const Observed& seen);

/// Nodes whose state `plan` wants to know: those of pods that should be gone by now.
std::vector<std::string> nodes_wanted(const std::vector<Pod>& pods, api::Time now);

}  // namespace outrigger::controller
