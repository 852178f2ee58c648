#include "operator/policy/haste.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "api/names.h"
#include "operator/policy/reasons.h"

namespace outrigger::controller {
namespace {

// What these say is how many of the pods are so far, and whether that is all of them. That servers
// are starting is a decision's ground (reasons.h), but until it is written they count as not made:
// one that vanishes at once is then made again, in the same attempt.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kCounts{{
    {api::kConditionPodsScheduled, kCreatingServers},
    {api::kConditionPodsScheduled, "Pending"},
    {api::kConditionPodsScheduled, "Scheduled"},
    {api::kConditionPodsReady, kCreatingServers},
    {api::kConditionPodsReady, "NotReady"},
    {api::kConditionPodsReady, "Ready"},
    {api::kConditionRunning, kCreatingServers},
    {api::kConditionRunning, kStartingServers},
}};

bool counts(const api::Condition& condition) {
  return std::any_of(kCounts.begin(), kCounts.end(), [&](const auto& one) {
    return condition.type == one.first && condition.reason == one.second;
  });
}

api::TrainingJobStatus without_counts(api::TrainingJobStatus status) {
  status.roles.clear();
  status.workers.reset();
  std::erase_if(status.conditions, counts);
  return status;
}

}  // namespace

bool only_counts(const api::TrainingJobStatus& before, const Plan& made) {
  return made.events.empty() && !made.restart && !made.unfinished &&
         without_counts(before) == without_counts(made.status);
}

Duration gathering_time(size_t jobs_that_wait) {
  constexpr size_t kMany = 90;
  return std::chrono::milliseconds(100 + 10 * std::min(jobs_that_wait, kMany));
}

}  // namespace outrigger::controller
