#pragma once

#include <string>
#include <string_view>

#include "api/status.h"
#include "operator/policy/pass.h"

namespace outrigger::controller {

const api::Condition* find_condition(const api::TrainingJobStatus& status, std::string_view type);
bool is_true(const api::TrainingJobStatus& status, std::string_view type);
/// Whether the condition has that reason, whatever its status.
bool has_reason(const api::TrainingJobStatus& status, std::string_view type,
                std::string_view reason);

struct ConditionText {
  std::string reason;
  std::string message;
};
/// Sets a condition; the time of transition is kept where its status stays as it is.
void set_condition(Pass& pass, std::string_view type, bool holds, const ConditionText& text);

/// Nothing is wrong with a job that has no pods, or has ended: what people and alerts look for is
/// False from now on.
void clear_troubles(Pass& pass, const ConditionText& why);

bool is_finished(const api::TrainingJobStatus& status);
/// The one word that `kubectl get` shows.
std::string derived_state(const api::TrainingJobStatus& status);

}  // namespace outrigger::controller
