#include "operator/policy/failures.h"

#include <algorithm>
#include <csignal>

#include "api/exit_codes.h"
#include "api/last_words.h"
#include "operator/policy/pods.h"

namespace outrigger::controller {
namespace {

using api::FailureAction;

constexpr std::string_view kPodDeleted = "PodDeleted";
constexpr std::string_view kPodFailed = "PodFailed";
constexpr std::string_view kOutOfMemoryKilled = "OOMKilled";
constexpr int kBySignal = 128;  // what shells and kubelets add to a signal for the exit status

// A server of the user's own that ends well when it is deleted has not done its work.
bool ended_well(const Pod& pod) { return pod.ended && pod.ended->exit_code == 0; }

std::string reason_of(const Pod& pod) {
  if (is_disrupted(pod)) return std::string(kDisrupted);
  if (pod.deleting && ended_well(pod)) return std::string(kPodDeleted);
  if (!pod.ended) {
    if (pod.ended_for && !pod.ended_for->reason.empty()) return pod.ended_for->reason;
    return std::string(pod.deleting ? kPodDeleted : kPodFailed);
  }
  if (pod.ended->reason == kOutOfMemoryKilled) return pod.ended->reason;
  if (const auto known = api::find_exit_code(pod.ended->exit_code)) return std::string(known->name);
  return "ExitCode" + std::to_string(pod.ended->exit_code);
}

std::string message_of(const Pod& pod) {
  if (pod.ended && !pod.ended->message.empty()) {
    const auto words = api::parse_last_words(pod.ended->message);
    return words ? words->message : pod.ended->message;
  }
  if (pod.ended_for && !pod.ended_for->message.empty()) return pod.ended_for->message;
  if (pod.deleting && (!pod.ended || ended_well(pod))) return "somebody deleted the pod";
  return pod.ended ? "no last words" : "";
}

template <typename List, typename Value>
bool contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool fits(const api::FailureRule& rule, const Pod& pod) {
  if (rule.role && *rule.role != pod.role) return false;
  if (pod.ended && contains(rule.on_exit_codes, pod.ended->exit_code)) return true;
  if (pod.conditions.contains_any_of(rule.on_pod_conditions)) return true;
  return contains(rule.on_reasons, reason_of(pod)) ||
         (pod.ended_for && contains(rule.on_reasons, pod.ended_for->reason)) ||
         (pod.ended && contains(rule.on_reasons, pod.ended->reason));
}

// A pod that others delete ends as asked: well, with Stopped, by its signal, or without a word.
bool ended_as_asked(const Pod& pod) {
  if (!pod.deleting) return false;
  if (!pod.ended || ended_well(pod)) return true;
  if (pod.ended->reason == kOutOfMemoryKilled) return false;
  return pod.ended->exit_code == kBySignal + SIGKILL || pod.ended->exit_code == kBySignal + SIGTERM;
}

// The node did not take the pod, as one that shuts down or is short of something does not: no
// container of it ever ran.
bool refused_by_node(const Pod& pod) {
  if (pod.started || pod.ended || !pod.ended_for) return false;
  const std::string& reason = pod.ended_for->reason;
  return reason == "UnexpectedAdmissionError" || reason == "NodeAffinity" ||
         reason == "TopologyAffinityError" || reason.starts_with("OutOf") ||
         reason == "NodeShutdown" || reason == "Evicted";
}

void judge_by_table(const Pod& pod, Verdict& verdict) {
  if (is_disrupted(pod) || ended_as_asked(pod) || refused_by_node(pod)) {
    verdict.counted = false;
    return;
  }
  const auto known = pod.ended ? api::find_exit_code(pod.ended->exit_code) : std::nullopt;
  if (!known || pod.ended->reason == kOutOfMemoryKilled) return;
  verdict.counted = known->counted;
  if (!known->retryable) verdict.action = FailureAction::kFailJob;
}

}  // namespace

Verdict judge(const api::FailurePolicy& policy, const Pod& pod) {
  Verdict verdict;
  verdict.reason = reason_of(pod);
  verdict.message = message_of(pod);
  for (const api::FailureRule& rule : policy.rules) {
    if (!fits(rule, pod)) continue;
    verdict.by_rule = true;
    verdict.action = rule.action;
    verdict.counted = rule.action == FailureAction::kRestartJob;
    verdict.message += (verdict.message.empty() ? "" : "; ") + std::string("by the rule ") +
                       rule.name + " of failurePolicy";
    return verdict;
  }
  if (pod.role == api::Role::kWorker) {
    verdict.action = FailureAction::kReplacePod;
    verdict.counted = false;
    return verdict;
  }
  judge_by_table(pod, verdict);
  return verdict;
}

std::vector<RestartNote> usual_restarts() {
  constexpr auto kServer = api::Role::kServer;
  std::vector<RestartNote> notes{{kServer, std::string(kDisrupted), false},
                                 {kServer, std::string(kPodDeleted), false},
                                 {kServer, std::string(kPodFailed), true},
                                 {kServer, std::string(kOutOfMemoryKilled), true}};
  for (const api::ExitCodeInfo& code : api::exit_code_table()) {
    if (code.retryable) notes.push_back({kServer, std::string(code.name), code.counted});
  }
  for (const int signal : {SIGABRT, SIGKILL, SIGSEGV})
    notes.push_back({kServer, "ExitCode" + std::to_string(kBySignal + signal), true});
  return notes;
}

api::FailureStatus failure_of(const Pod& pod, const Verdict& verdict, api::Time now) {
  constexpr size_t kLongestTold = 4096;  // a status is read whole by everyone who watches jobs
  api::FailureStatus failure;
  failure.role = pod.role;
  failure.pod = pod.name;
  failure.node = pod.node;
  if (pod.ended) failure.exit_code = pod.ended->exit_code;
  failure.reason = verdict.reason;
  failure.message = verdict.message.substr(0, kLongestTold);
  failure.time = pod.ended && pod.ended->at ? *pod.ended->at : now;
  return failure;
}

}  // namespace outrigger::controller
