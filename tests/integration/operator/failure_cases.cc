// Exit codes and rules: tables, each row played on a job of its own.
#include "api/exit_codes.h"
#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

/// What the end of a pod makes of its job.
enum class Outcome { kFails, kRestarts, kRestartsUncounted, kReplaced };

struct Row {
  std::string name;
  End end;
  Outcome outcome = Outcome::kFails;
  std::string reason;  // in lastFailure, or of Degraded
  std::string role = "server";
  Json rule = {};
  std::string condition = {};  // of the pod, such as DisruptionTarget
};

void check_restart(Scene& scene, const Row& row, int counted) {
  scene.until("the next attempt", [&] { return scene.at("/executionAttempts") == 2; });
  scene.expect_equal(scene.status().value("restarts", 0), counted, "restarts");
  scene.expect_equal(scene.at("/lastFailure/reason"), row.reason, "lastFailure.reason");
  scene.expect(scene.condition("Failed").empty(), "not failed");
  scene.until("a server of the next attempt", [&] {
    scene.finish_deletions();
    return !scene.server_of(2).empty();
  });
}

void check_replaced(Scene& scene, const Row& row) {
  scene.until("another worker", [&] { return scene.find(kPods, "faces-worker-0-1").is_object(); });
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
  scene.expect(scene.condition("Failed").empty(), "not failed");
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "the server goes on");
  if (row.reason.empty()) return;
  scene.expect_equal(scene.condition("Degraded"), "True/" + row.reason, "Degraded");
}

void check_failed(Scene& scene, const Row& row) {
  scene.until("the job has failed",
              [&] { return scene.condition("Failed") == "True/" + row.reason; });
  scene.expect_equal(scene.at("/lastFailure/reason"), row.reason, "lastFailure.reason");
  scene.expect_equal(scene.at("/lastFailure/exitCode"), row.end.code, "lastFailure.exitCode");
  scene.expect_equal(scene.at("/lastFailure/pod"), "faces-" + row.role + "-0-0", "lastFailure.pod");
  scene.expect(scene.message("Failed").find(row.end.message) != std::string::npos,
               "its last words: " + scene.message("Failed"));
}

void play(Scene& scene, const Row& row) {
  Json more = Json::object();
  if (!row.rule.is_null()) more = {{"failurePolicy", {{"rules", Json::array({row.rule})}}}};
  scene.start_and_run(more);
  const std::string pod = "faces-" + row.role + "-0-0";
  if (!row.condition.empty()) scene.add_condition(pod, row.condition, "ByATest");
  scene.end(pod, row.end);
  switch (row.outcome) {
    case Outcome::kFails:
      return check_failed(scene, row);
    case Outcome::kRestarts:
      return check_restart(scene, row, 1);
    case Outcome::kRestartsUncounted:
      return check_restart(scene, row, 0);
    case Outcome::kReplaced:
      return check_replaced(scene, row);
  }
}

std::vector<Case> played(const std::vector<Row>& rows) {
  std::vector<Case> cases;
  for (const Row& row : rows)
    cases.push_back({row.name, [row](Scene& scene, Surroundings&) { play(scene, row); }});
  return cases;
}

Json rule(const std::string& role, const char* by, const Json& values, const std::string& action) {
  Json made{{"name", "mine"}, {by, values}, {"action", action}};
  if (!role.empty()) made["role"] = role;
  return made;
}

}  // namespace

std::vector<Case> exit_code_cases() {
  std::vector<Row> rows;
  for (const api::ExitCodeInfo& info : api::exit_code_table()) {
    if (info.code == api::ExitCode::kDone) continue;
    const int code = static_cast<int>(info.code);
    const std::string name(info.name);
    const Outcome server = !info.retryable ? Outcome::kFails
                           : info.counted  ? Outcome::kRestarts
                                           : Outcome::kRestartsUncounted;
    rows.push_back({"AServersCode" + name, {code, "Error", "words of " + name}, server, name});
    rows.push_back(
        {"AWorkersCode" + name, {code, "Error", "words"}, Outcome::kReplaced, name, "worker"});
  }
  for (const std::string role : {"server", "worker"}) {
    const std::string whose = role == "server" ? "AServers" : "AWorkers";
    const Outcome outcome = role == "server" ? Outcome::kRestarts : Outcome::kReplaced;
    rows.push_back({whose + "OomKill", {137, "OOMKilled"}, outcome, "OOMKilled", role});
    rows.push_back({whose + "SegmentationFault", {139}, outcome, "ExitCode139", role});
    rows.push_back({whose + "UnknownCode", {77}, outcome, "ExitCode77", role});
  }
  rows.push_back({"AWorkerThatIsDoneIsReplaced", {0}, Outcome::kReplaced, "", "worker"});
  return played(rows);
}

std::vector<Case> rule_cases() {
  const Json code = Json::array({77});
  const Json oom = Json::array({"OOMKilled"});
  const Json disruption = Json::array({"DisruptionTarget"});
  std::vector<Row> rows{{"FailJobByExitCode",
                         {77},
                         Outcome::kFails,
                         "ExitCode77",
                         "server",
                         rule("", "onExitCodes", code, "FailJob")},
                        {"RestartJobByExitCode",
                         {13},
                         Outcome::kRestarts,
                         "NumericalError",
                         "server",
                         rule("Server", "onExitCodes", Json::array({13}), "RestartJob")},
                        {"RestartUncountedByExitCode",
                         {77},
                         Outcome::kRestartsUncounted,
                         "ExitCode77",
                         "server",
                         rule("Server", "onExitCodes", code, "RestartJobAndIgnoreMaxRestarts")},
                        {"FailJobByReason",
                         {137, "OOMKilled"},
                         Outcome::kFails,
                         "OOMKilled",
                         "server",
                         rule("Server", "onReasons", oom, "FailJob")},
                        {"RestartUncountedByReason",
                         {137, "OOMKilled"},
                         Outcome::kRestartsUncounted,
                         "OOMKilled",
                         "server",
                         rule("Server", "onReasons", oom, "RestartJobAndIgnoreMaxRestarts")},
                        {"FailJobByPodCondition",
                         {143},
                         Outcome::kFails,
                         "Disrupted",
                         "server",
                         rule("Server", "onPodConditions", disruption, "FailJob"),
                         "DisruptionTarget"},
                        {"RestartCountedByPodCondition",
                         {143},
                         Outcome::kRestarts,
                         "Disrupted",
                         "server",
                         rule("Server", "onPodConditions", disruption, "RestartJob"),
                         "DisruptionTarget"},
                        {"AWorkerFailsTheJobByExitCode",
                         {77},
                         Outcome::kFails,
                         "ExitCode77",
                         "worker",
                         rule("Worker", "onExitCodes", code, "FailJob")},
                        {"AWorkerFailsTheJobByReason",
                         {137, "OOMKilled"},
                         Outcome::kFails,
                         "OOMKilled",
                         "worker",
                         rule("Worker", "onReasons", oom, "FailJob")},
                        {"AWorkerRestartsTheJob",
                         {77},
                         Outcome::kRestarts,
                         "ExitCode77",
                         "worker",
                         rule("Worker", "onExitCodes", code, "RestartJob")},
                        {"AWorkerRestartsTheJobUncounted",
                         {77},
                         Outcome::kRestartsUncounted,
                         "ExitCode77",
                         "worker",
                         rule("Worker", "onExitCodes", code, "RestartJobAndIgnoreMaxRestarts")},
                        {"ReplacePodIsWhatAWorkerHasAnyway",
                         {77},
                         Outcome::kReplaced,
                         "ExitCode77",
                         "worker",
                         rule("Worker", "onExitCodes", code, "ReplacePod")},
                        {"ARuleForWorkersIsNotForServers",
                         {77},
                         Outcome::kRestarts,
                         "ExitCode77",
                         "server",
                         rule("Worker", "onExitCodes", code, "FailJob")},
                        {"ARuleForServersIsNotForWorkers",
                         {77},
                         Outcome::kReplaced,
                         "ExitCode77",
                         "worker",
                         rule("Server", "onExitCodes", code, "FailJob")},
                        {"ARuleForAnotherCodeSaysNothing",
                         {78},
                         Outcome::kRestarts,
                         "ExitCode78",
                         "server",
                         rule("", "onExitCodes", code, "FailJob")}};
  return played(rows);
}

}  // namespace outrigger::integration
