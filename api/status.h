#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/run_policy.h"
#include "api/time.h"

namespace outrigger::api {

enum class ConditionStatus { kTrue, kFalse, kUnknown };
enum class StallCause { kNone, kRead, kDecode, kStem, kLink, kWeights, kOptimizer };

std::string_view to_string(ConditionStatus value);
std::string_view to_string(StallCause value);

/// As metav1.Condition; `type` is one of names.h's kCondition….
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::optional<int64_t> observed_generation;
  std::optional<Time> last_transition_time;
  std::string reason;
  std::string message;
  bool operator==(const Condition&) const = default;
};

/// Pods of one role by state.
struct RoleStatus {
  std::string name;
  int desired = 0;
  int ready = 0;
  int failed = 0;
  bool operator==(const RoleStatus&) const = default;
};

/// The scale subresource's numbers, and what the printer column shows ("3/4").
struct WorkersStatus {
  int replicas = 0;
  std::string selector;
  std::string summary;
  bool operator==(const WorkersStatus&) const = default;
};

/// What the autoscaler sees and did.
struct ScalingStatus {
  int replicas = 0;           // as it wrote them last, or found them
  std::optional<int> former;  // what they are to replace; absent: that is done
  std::optional<int> desired;
  std::optional<Time> changed_time;  // of spec.workers.replicas, whoever wrote them
  std::optional<Time> foreign_time;  // the same of somebody else's last write
  std::string reason;
  bool operator==(const ScalingStatus&) const = default;
};

/// A number to show: text, because a schema with floats compares badly.
struct MetricValue {
  std::string name;
  std::string value;
  bool operator==(const MetricValue&) const = default;
};

struct ProgressStatus {
  int percent = 0;
  std::optional<int64_t> epoch;
  int64_t step = 0;
  std::optional<int64_t> total_steps;
  std::optional<int64_t> samples_per_second;
  std::optional<int64_t> remaining_seconds;
  std::vector<MetricValue> metrics;
  std::optional<Time> updated_time;
  bool operator==(const ProgressStatus&) const = default;
};

/// The plan in force.
struct SplitStatus {
  int64_t plan = 0;
  std::string cut;
  int share_percent = 0;
  std::optional<int> local_input_percent;
  std::optional<int> server_percent;
  int stall_percent = 0;
  StallCause stall_cause = StallCause::kNone;
  std::string reason;
  bool operator==(const SplitStatus&) const = default;
};

struct CheckpointStatus {
  int64_t step = 0;
  std::string path;
  std::optional<Time> time;
  bool operator==(const CheckpointStatus&) const = default;
};

struct OutputStatus {
  std::string path;
  bool operator==(const OutputStatus&) const = default;
};

struct FailureStatus {
  std::optional<Role> role;
  std::string pod;
  std::string node;
  std::optional<int> exit_code;
  std::string reason;
  std::string message;
  std::optional<Time> time;
  bool operator==(const FailureStatus&) const = default;
};

/// `status`: what the operator and the server saw. An empty text or list is a field left out.
struct TrainingJobStatus {
  std::optional<int64_t> observed_generation;
  std::vector<Condition> conditions;
  std::string state;  // display only, derived from the conditions
  std::optional<Time> start_time;
  std::optional<Time> completion_time;
  int restarts = 0;
  int execution_attempts = 0;
  std::map<std::string, std::string> images;  // role to image with digest
  std::vector<RoleStatus> roles;
  std::optional<WorkersStatus> workers;
  std::optional<ScalingStatus> scaling;
  std::optional<ProgressStatus> progress;
  std::optional<SplitStatus> split;
  std::optional<CheckpointStatus> checkpoint;
  std::optional<OutputStatus> output;
  std::optional<FailureStatus> last_failure;
  bool operator==(const TrainingJobStatus&) const = default;
};

}  // namespace outrigger::api
