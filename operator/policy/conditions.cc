#include "operator/policy/conditions.h"

#include <algorithm>

#include "api/names.h"

namespace outrigger::controller {
namespace {

// What the schema allows.
constexpr size_t kLongestReason = 1024;
constexpr size_t kLongestMessage = 32768;

}  // namespace

const api::Condition* find_condition(const api::TrainingJobStatus& status, std::string_view type) {
  const auto at = std::find_if(status.conditions.begin(), status.conditions.end(),
                               [&](const auto& condition) { return condition.type == type; });
  return at == status.conditions.end() ? nullptr : &*at;
}

bool is_true(const api::TrainingJobStatus& status, std::string_view type) {
  const auto* condition = find_condition(status, type);
  return condition != nullptr && condition->status == api::ConditionStatus::kTrue;
}

bool has_reason(const api::TrainingJobStatus& status, std::string_view type,
                std::string_view reason) {
  const auto* condition = find_condition(status, type);
  return condition != nullptr && condition->reason == reason;
}

void set_condition(Pass& pass, std::string_view type, bool holds, const ConditionText& text) {
  auto& conditions = pass.status().conditions;
  auto at = std::find_if(conditions.begin(), conditions.end(),
                         [&](const auto& condition) { return condition.type == type; });
  if (at == conditions.end()) {
    conditions.push_back({});
    at = conditions.end() - 1;
    at->type = type;
  }
  const auto status = holds ? api::ConditionStatus::kTrue : api::ConditionStatus::kFalse;
  if (at->status != status || !at->last_transition_time) at->last_transition_time = pass.now;
  at->status = status;
  at->observed_generation = pass.seen.job.metadata.generation;
  at->reason = text.reason.substr(0, kLongestReason);
  at->message = text.message.substr(0, kLongestMessage);
}

void clear_troubles(Pass& pass, const ConditionText& why) {
  for (const auto type : {api::kConditionRestarting, api::kConditionDegraded,
                          api::kConditionInputStarved, api::kConditionScalingContested}) {
    if (is_true(pass.plan.status, type)) set_condition(pass, type, false, why);
  }
}

bool is_finished(const api::TrainingJobStatus& status) {
  return is_true(status, api::kConditionComplete) || is_true(status, api::kConditionFailed);
}

std::string derived_state(const api::TrainingJobStatus& status) {
  if (is_true(status, api::kConditionSuspended) &&
      has_reason(status, api::kConditionSuspended, "Queued") && !is_finished(status))
    return "Queued";
  for (const auto type : {api::kConditionFailed, api::kConditionComplete, api::kConditionSuspended,
                          api::kConditionRestarting, api::kConditionRunning}) {
    if (is_true(status, type)) return std::string(type);
  }
  if (has_reason(status, api::kConditionSuspended, "Suspending")) return "Suspending";
  return status.start_time ? "Starting" : "Pending";
}

}  // namespace outrigger::controller
