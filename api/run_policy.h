#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrigger::api {

enum class Role { kServer, kWorker };
enum class FailureAction { kFailJob, kRestartJob, kRestartJobAndIgnoreMaxRestarts, kReplacePod };
enum class Gang { kNone, kVolcano };
enum class CleanPodPolicy { kAll, kRunning, kNone };

std::string_view to_string(Role value);
std::string_view to_string(FailureAction value);
std::string_view to_string(Gang value);
std::string_view to_string(CleanPodPolicy value);

/// `spec.output`: where the run's files go, in a folder of the job's name.
struct OutputSpec {
  std::string path;
  std::optional<std::string> volume_claim_name;
  bool operator==(const OutputSpec&) const = default;
};

/// `spec.checkpoint`.
struct CheckpointSpec {
  std::optional<std::string> path;  // absent: output.path
  std::optional<std::string> volume_claim_name;
  int64_t every_steps = 1000;
  int keep = 3;
  std::chrono::seconds grace_period{120};
  bool operator==(const CheckpointSpec&) const = default;
};

/// What to do about one kind of failure; exactly one of the three lists is filled.
struct FailureRule {
  std::string name;
  std::optional<Role> role;  // absent: both
  std::vector<int> on_exit_codes;
  std::vector<std::string> on_pod_conditions;
  std::vector<std::string> on_reasons;
  FailureAction action = FailureAction::kFailJob;
  bool operator==(const FailureRule&) const = default;
};

/// `spec.failurePolicy`: the first rule that fits decides; else the table of exit codes does.
struct FailurePolicy {
  int max_restarts = 3;
  std::vector<FailureRule> rules;
  bool operator==(const FailurePolicy&) const = default;
};

/// `spec.schedulingPolicy`.
struct SchedulingPolicy {
  Gang gang = Gang::kNone;
  std::optional<std::string> queue;
  std::optional<std::string> priority_class_name;
  std::optional<std::string> topology_key;
  bool operator==(const SchedulingPolicy&) const = default;
};

}  // namespace outrigger::api
