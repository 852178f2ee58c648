#include "operator/policy/failures.h"

#include <gtest/gtest.h>

#include "api/exit_codes.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using api::FailureAction;

Pod ended(int code, const std::string& reason = "Error") {
  Pod pod;
  pod.name = "faces-server-0-0";
  pod.phase = PodPhase::kFailed;
  pod.ended = Ended{code, reason, "", api::Time()};
  return pod;
}

api::FailureRule rule(const std::string& name, FailureAction action) {
  api::FailureRule made;
  made.name = name;
  made.action = action;
  return made;
}

TEST(Failures, EveryExitCodeOfTheTableIsFollowedAsTheTableSays) {
  for (const auto& row : api::exit_code_table()) {
    if (row.code == api::ExitCode::kDone) continue;
    const Verdict verdict = judge({}, ended(static_cast<int>(row.code)));
    EXPECT_EQ(verdict.reason, row.name);
    EXPECT_EQ(verdict.action == FailureAction::kRestartJob, row.retryable) << row.name;
    if (!row.retryable) continue;
    EXPECT_EQ(verdict.counted, row.counted) << row.name;
  }
}

TEST(Failures, AnExitCodeThatIsNotOursRestartsAndCounts) {
  for (const int code : {3, 126, 137, 139}) {
    const Verdict verdict = judge({}, ended(code));
    EXPECT_EQ(verdict.action, FailureAction::kRestartJob) << code;
    EXPECT_TRUE(verdict.counted) << code;
  }
}

TEST(Failures, TheKernelsMemoryKillerIsNamedAndCounts) {
  const Verdict verdict = judge({}, ended(137, "OOMKilled"));
  EXPECT_EQ(verdict.reason, "OOMKilled");
  EXPECT_TRUE(verdict.counted);
}

TEST(Failures, ADisruptionDoesNotCountWhateverTheExitCode) {
  for (const int code : {1, 20, 137, 143}) {
    Pod pod = ended(code);
    pod.conditions.insert("DisruptionTarget");
    const Verdict verdict = judge({}, pod);
    EXPECT_EQ(verdict.action, FailureAction::kRestartJob) << code;
    EXPECT_FALSE(verdict.counted) << code;
    EXPECT_EQ(verdict.reason, "Disrupted") << code;
  }
}

TEST(Failures, APodThatTheKubeletDidNotTakeIsNoFailureOfTheJobs) {
  for (const char* reason :
       {"UnexpectedAdmissionError", "OutOfcpu", "NodeAffinity", "NodeShutdown", "Evicted"}) {
    Pod pod;
    pod.phase = PodPhase::kFailed;
    pod.ended_for = Why{reason, "no healthy device"};
    const Verdict verdict = judge({}, pod);
    EXPECT_EQ(verdict.action, FailureAction::kRestartJob);
    EXPECT_EQ(verdict.reason, reason);
    EXPECT_EQ(verdict.message, "no healthy device");
    EXPECT_FALSE(verdict.counted) << reason;
    pod.started = api::Time();
    EXPECT_TRUE(judge({}, pod).counted) << reason << ", but it ran";
  }
}

TEST(Failures, AnyOtherEndOfAPodThatNeverRanCounts) {
  Pod pod;
  pod.phase = PodPhase::kFailed;
  pod.ended_for = Why{"DeadlineExceeded", ""};
  EXPECT_TRUE(judge({}, pod).counted);
}

TEST(Failures, TheFirstRuleThatFitsDecides) {
  api::FailurePolicy policy;
  policy.rules = {rule("first", FailureAction::kRestartJobAndIgnoreMaxRestarts),
                  rule("second", FailureAction::kFailJob)};
  policy.rules[0].on_exit_codes = {42};
  policy.rules[1].on_exit_codes = {42, 43};
  const Verdict first = judge(policy, ended(42));
  EXPECT_EQ(first.action, FailureAction::kRestartJobAndIgnoreMaxRestarts);
  EXPECT_FALSE(first.counted);
  EXPECT_EQ(judge(policy, ended(43)).action, FailureAction::kFailJob);
  EXPECT_FALSE(judge(policy, ended(44)).by_rule);
}

TEST(Failures, ARuleNamesExitCodesConditionsOrReasons) {
  api::FailurePolicy policy;
  policy.rules = {rule("oom", FailureAction::kFailJob), rule("drain", FailureAction::kFailJob)};
  policy.rules[0].on_reasons = {"OOMKilled"};
  policy.rules[1].on_pod_conditions = {"DisruptionTarget"};
  EXPECT_EQ(judge(policy, ended(137, "OOMKilled")).action, FailureAction::kFailJob);
  EXPECT_EQ(judge(policy, ended(137)).action, FailureAction::kRestartJob);
  Pod drained = ended(143);
  drained.conditions.insert("DisruptionTarget");
  EXPECT_EQ(judge(policy, drained).action, FailureAction::kFailJob);
}

TEST(Failures, ARuleForWorkersSaysNothingOfServers) {
  api::FailurePolicy policy;
  policy.rules = {rule("worker", FailureAction::kFailJob)};
  policy.rules[0].role = api::Role::kWorker;
  policy.rules[0].on_exit_codes = {1};
  EXPECT_EQ(judge(policy, ended(1)).action, FailureAction::kRestartJob);
  Pod worker = ended(1);
  worker.role = api::Role::kWorker;
  EXPECT_EQ(judge(policy, worker).action, FailureAction::kFailJob);
}

World with_rule(const std::string& rule_text) {
  World world(
      "  workers: {replicas: 2}\n  failurePolicy: {rules: [{name: it, role: Worker, "
      "onExitCodes: [7], action: " +
      rule_text + "}]}\n");
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

TEST(Failures, AWorkerThatARuleNamesFailsTheJob) {
  World world = with_rule("FailJob");
  world.end("faces-worker-1-0", {7});
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/ExitCode7");
  EXPECT_EQ(world.status().last_failure->role, api::Role::kWorker);
}

TEST(Failures, WorkersThatARuleNamesRestartTheJobOnceForAllThatFailedTogether) {
  World world = with_rule("RestartJob");
  world.end("faces-worker-0-0", {7});
  world.end("faces-worker-1-0", {7});
  world.settle();
  world.finish_deletions();
  world.advance(seconds(10));
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.status().restarts, 1);
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.condition("Restarting"), "False/Restarted");
  EXPECT_EQ(world.living("server").size(), 1U);
  EXPECT_EQ(world.living("worker").size(), 2U);
}

// The restart that worker 0 asked for is over, and its failed pod is there yet: its successor
// waits.
World after_a_restart_for_worker_0() {
  World world = running(
      "  workers: {replicas: 2}\n  failurePolicy: {maxRestarts: 2, rules: [{name: again, role: "
      "Worker, onExitCodes: [7], action: RestartJob}, {name: over, role: Worker, onExitCodes: "
      "[12], action: FailJob}]}\n");
  Json& annotations = world.pods.at("faces-worker-0-0")["metadata"]["annotations"];
  annotations["outrigger.dev/failures"] = "6";
  world.end("faces-worker-0-0", {7});
  world.settle();
  world.finish_deletions();
  world.settle();
  world.advance(seconds(15));
  world.run_all();
  world.settle();
  return world;
}

TEST(Failures, ARestartIsOverWhenTheServersRunThoughAWorkerBacksOff) {
  World world = after_a_restart_for_worker_0();
  EXPECT_EQ(world.names("worker").size(), 2U);
  EXPECT_EQ(world.living("worker"), std::vector<std::string>{"faces-worker-1-0"});
  EXPECT_EQ(world.condition("Restarting"), "False/Restarted");
  EXPECT_EQ(world.status().restarts, 1) << "its failure counts once";
}

TEST(Failures, AWorkerThatFailsAfterARestartIsJudgedThoughAnotherStillBacksOff) {
  struct Case {
    int code;
    const char* restarting;
    const char* failed;
    int restarts;
  };
  for (const Case& one :
       {Case{7, "True/ExitCode7", "", 2}, Case{12, "False/Restarted", "True/BadData", 1},
        Case{1, "False/Restarted", "", 1}}) {
    World world = after_a_restart_for_worker_0();
    world.advance(seconds(15));
    world.end("faces-worker-1-0", {one.code});
    world.settle();
    EXPECT_EQ(world.condition("Restarting"), one.restarting) << one.code;
    EXPECT_EQ(world.condition("Failed"), one.failed) << one.code;
    EXPECT_EQ(world.status().restarts, one.restarts) << one.code;
  }
}

TEST(Failures, AWorkerWhoseRuleFailsTheJobDoesSoWhileARestartWaitsForAPlace) {
  World world = running(
      "  workers: {replicas: 2}\n  failurePolicy: {rules: [{name: again, role: Worker, "
      "onExitCodes: [7], action: RestartJob}, {name: over, role: Worker, onExitCodes: [12], "
      "action: FailJob}]}\n");
  world.disrupt("faces-server-0-0");
  world.settle();
  world.finish_deletions();
  world.settle();
  world.advance(seconds(7200));
  world.end("faces-worker-1-0", {7});
  world.settle();
  EXPECT_EQ(world.condition("Restarting"), "True/Disrupted");
  EXPECT_EQ(world.status().execution_attempts, 2) << "the restart under way is for it too";
  world.end("faces-worker-0-0", {12});
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/BadData");
  EXPECT_EQ(world.status().last_failure->pod, "faces-worker-0-0");
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(Failures, WorkersThatFailInTurnReachMaxRestarts) {
  World world = after_a_restart_for_worker_0();
  world.pods.at("faces-worker-1-0")["metadata"]["annotations"]["outrigger.dev/failures"] = "6";
  world.advance(seconds(1));
  world.end("faces-worker-1-0", {7});
  for (int i = 0; i < 2; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.advance(seconds(49));
  world.settle();
  world.run_all();
  world.settle();
  ASSERT_EQ(world.living("worker"), std::vector<std::string>{"faces-worker-0-1"});
  EXPECT_EQ(world.status().restarts, 2);
  world.advance(seconds(1));
  world.end("faces-worker-0-1", {7});
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "True/MaxRestartsExceeded");
}

TEST(Failures, AWorkerWhosePodDoesNotSayWhenItEndedIsJudgedOnce) {
  for (const bool disrupted : {false, true}) {
    World world = running(
        "  workers: {replicas: 1}\n  failurePolicy: {rules: [{name: refused, role: Worker, "
        "onReasons: [NodeShutdown], action: RestartJob}, {name: lost, role: Worker, "
        "onPodConditions: [DisruptionTarget], action: RestartJob}]}\n");
    for (int failure = 1; failure <= 2; ++failure) {
      world.advance(seconds(60));
      const std::string worker = world.living("worker").at(0);
      if (!disrupted) {
        world.vanish(worker);  // the node refuses its successor
        world.settle();
      }
      Json& status = world.pods.at(world.living("worker").at(0))["status"];
      status = {{"phase", "Failed"}, {"reason", "NodeShutdown"}};
      if (disrupted) {
        status["conditions"] = Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}});
      }
      for (int i = 0; i < 3; ++i) {
        world.settle();
        world.finish_deletions();
        world.advance(seconds(5));
        world.run_all();
      }
      EXPECT_EQ(world.status().restarts, failure) << disrupted;
      EXPECT_EQ(world.condition("Restarting"), "False/Restarted") << disrupted;
    }
  }
}

TEST(Failures, NoRuleJudgesWorkersThatWereAskedToEnd) {
  for (const char* action : {"FailJob", "RestartJob"}) {
    World fewer = with_rule(action);
    fewer.spec().workers.replicas = 1;
    fewer.settle();
    fewer.end("faces-worker-1-0", {7});
    fewer.settle();
    EXPECT_EQ(fewer.condition("Failed"), "") << action;
    EXPECT_EQ(fewer.status().execution_attempts, 1) << action;
    World deleted = with_rule(action);
    deleted.ask_to_delete("faces-worker-0-0");
    deleted.end("faces-worker-0-0", {7});
    deleted.settle();
    EXPECT_EQ(deleted.condition("Failed"), "") << action;
    EXPECT_EQ(deleted.status().execution_attempts, 1) << action;
  }
}

TEST(Failures, AWorkerThatFailedBeforeThereWereToBeFewerIsJudgedByNoRule) {
  World world = with_rule("FailJob");
  world.end("faces-worker-1-0", {7});
  world.spec().workers.replicas = 1;
  world.settle();
  EXPECT_EQ(world.condition("Failed"), "");
}

TEST(Failures, ADrainedWorkerIsJudgedThoughItWasAskedToEnd) {
  World world = running(
      "  workers: {replicas: 2}\n  failurePolicy: {rules: [{name: it, role: Worker, "
      "onPodConditions: [DisruptionTarget], action: RestartJob}]}\n");
  world.ask_to_delete("faces-worker-0-0");
  world.end("faces-worker-0-0", {143});
  world.add_condition("faces-worker-0-0", {{"type", "DisruptionTarget"}, {"status", "True"}});
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 2);
}

TEST(Failures, AWorkerReplacedByRuleLeavesTheServersAlone) {
  World world = with_rule("ReplacePod");
  world.end("faces-worker-0-0", {7});
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 1);
}

}  // namespace
}  // namespace outrigger::controller
