#include "api/names.h"
#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

using Pointer = Json::json_pointer;

std::string attempt_of(const Json& object) {
  return kube::label(object, std::string(api::kAttemptLabel)).value_or("");
}

void until_attempt(Scene& scene, int attempt) {
  scene.until("attempt " + std::to_string(attempt),
              [&] { return scene.at("/executionAttempts") == attempt; });
}

// The living server of an index, once it is of the attempt that the status names.
std::string until_server(Scene& scene, const std::string& index = "0") {
  std::string name;
  scene.until("a server of the present attempt", [&] {
    scene.finish_deletions();
    const std::string attempt = scene.at("/executionAttempts").dump();
    for (const Json& pod : scene.pods("server")) {
      if (attempt_of(pod) != attempt || kube::is_deleting(pod)) continue;
      if (kube::label(pod, std::string(api::kIndexLabel)) == index) name = kube::name_of(pod);
    }
    return !name.empty();
  });
  return name;
}

void fail_server(Scene& scene, int code = 22) { scene.end(until_server(scene), {code}); }

void run_again(Scene& scene) {
  scene.run(until_server(scene));
  scene.until_condition("Running", "True/ServersReady");
}

void it_runs_again(Scene& scene, Surroundings&) {
  scene.start_and_run();
  fail_server(scene);
  scene.until_condition("Restarting", "True/IoFailure");
  run_again(scene);
  scene.until_condition("Restarting", "False/Restarted");
  scene.expect_equal(scene.at("/restarts"), 1, "restarts");
  scene.expect_equal(scene.at("/state"), "Running", "state");
}

void max_restarts(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 2}}}});
  for (int i = 1; i <= 2; ++i) {
    fail_server(scene);
    until_attempt(scene, i + 1);
    run_again(scene);
  }
  fail_server(scene);
  scene.until_condition("Failed", "True/MaxRestartsExceeded");
  scene.expect_equal(scene.at("/restarts"), 2, "restarts");
  scene.expect_equal(scene.at("/executionAttempts"), 3, "attempts");
}

void no_restart_at_all(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  fail_server(scene);
  scene.until_condition("Failed", "True/MaxRestartsExceeded");
}

void max_restarts_raised_meanwhile(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  scene.change_spec({{"failurePolicy", {{"maxRestarts", 1}}}});
  scene.until("it is seen", [&] { return scene.at("/observedGeneration") == 2; });
  fail_server(scene);
  until_attempt(scene, 2);
  scene.expect_equal(scene.at("/restarts"), 1, "restarts");
}

// Also several in a row.
void disruptions_do_not_count(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  for (int i = 2; i <= 4; ++i) {
    const std::string server = until_server(scene);
    scene.add_condition(server, "DisruptionTarget", "EvictionByEvictionAPI");
    scene.end(server, {143});
    until_attempt(scene, i);
    run_again(scene);
  }
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void a_drain_with_grace(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  scene.add_condition("faces-server-0-0", "DisruptionTarget", "EvictionByEvictionAPI");
  scene.remove("faces-server-0-0");
  scene.stays(
      "it has its grace", [&] { return scene.at("/executionAttempts") == 1; }, seconds(1));
  scene.end("faces-server-0-0", {20});
  until_attempt(scene, 2);
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
  scene.expect_equal(scene.at("/lastFailure/reason"), "Disrupted", "lastFailure.reason");
}

void an_eviction_through_the_api(Scene& scene, Surroundings& around) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  const Json eviction{{"apiVersion", "policy/v1"},
                      {"kind", "Eviction"},
                      {"metadata", {{"name", "faces-server-0-0"}, {"namespace", scene.ns()}}}};
  // POST pods/NAME/eviction, by the resource that the path makes.
  const kube::Resource evictions{"", "v1", "pods/faces-server-0-0/eviction", "Eviction"};
  (void)around.client.create(evictions, eviction).take();
  scene.until("it is marked", [&] {
    return scene.pod("faces-server-0-0").dump().find("DisruptionTarget") != std::string::npos;
  });
  scene.end("faces-server-0-0", {20});
  until_attempt(scene, 2);
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void somebody_deletes_a_server(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  scene.remove("faces-server-0-0");
  scene.end("faces-server-0-0", {143});
  until_attempt(scene, 2);
  run_again(scene);
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void a_server_vanishes(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  scene.vanish("faces-server-0-0");
  until_attempt(scene, 2);
  scene.expect_equal(scene.at("/lastFailure/reason"), "PodDeleted", "lastFailure.reason");
  run_again(scene);
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void a_server_vanishes_before_it_ran(Scene& scene, Surroundings&) {
  scene.start();
  scene.until_condition("Running", "False/Starting");
  scene.vanish("faces-server-0-0");
  until_attempt(scene, 2);
  until_server(scene);
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void all_ranks_together(Scene& scene, Surroundings&) {
  scene.start_and_run({{"server", {{"replicas", 3}}}, {"workers", {{"replicas", 0}}}});
  const std::string kept = kube::uid_of(scene.pod("faces-server-2-0"));
  scene.end("faces-server-0-0", {22});
  until_attempt(scene, 2);
  scene.until("the others are asked to end", [&] {
    return kube::is_deleting(scene.pod("faces-server-1-0")) &&
           kube::is_deleting(scene.pod("faces-server-2-0"));
  });
  scene.stays(
      "the next attempt waits for them", [&] { return scene.names().size() <= 3; }, seconds(1));
  for (const char* index : {"0", "1", "2"}) until_server(scene, index);
  scene.expect(kube::uid_of(scene.pod(until_server(scene, "2"))) != kept, "another pod");
  scene.expect_equal(scene.at("/restarts"), 1, "counted once");
}

void ranks_that_fail_together_count_once(Scene& scene, Surroundings&) {
  scene.start_and_run({{"server", {{"replicas", 3}}}, {"workers", {{"replicas", 0}}}});
  scene.end("faces-server-1-0", {23});
  scene.end("faces-server-2-0", {23});
  scene.end("faces-server-0-0", {22});
  until_attempt(scene, 2);
  scene.expect_equal(scene.at("/lastFailure/reason"), "IoFailure", "the cause, not its echo");
  scene.expect_equal(scene.at("/restarts"), 1, "counted once");
}

void the_service_follows_the_attempt(Scene& scene, Surroundings&) {
  scene.start_and_run();
  fail_server(scene);
  until_server(scene);
  scene.until("the Service selects attempt 2", [&] {
    return scene.get(kServices, "faces-server")
               .at(Pointer("/spec/selector"))
               .at(std::string(api::kAttemptLabel)) == "2";
  });
}

void a_config_map_for_each_attempt(Scene& scene, Surroundings&) {
  scene.start_and_run();
  fail_server(scene);
  until_server(scene);
  scene.until("the next ConfigMap",
              [&] { return scene.find(kConfigMaps, "faces-config-2").is_object(); });
  scene.vanish("faces-server-0-0");
  scene.until("the former one goes with its last pod",
              [&] { return scene.find(kConfigMaps, "faces-config-1").is_null(); });
}

// What a server compares with the attempt on the volume before it renames a checkpoint.
int64_t fence_of(const Json& pod) {
  const Json& args = pod.at(Pointer("/spec/containers/0/args"));
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string arg = args[i];
    if (arg == "--attempt") return std::stoll(args.at(i + 1).get<std::string>());
    if (arg.starts_with("--attempt=")) return std::stoll(arg.substr(10));
  }
  throw CaseFailed("no attempt among the arguments: " + args.dump());
}

void later_attempts_fence_former_ones(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const int64_t first = fence_of(scene.pod("faces-server-0-0"));
  fail_server(scene);
  until_attempt(scene, 2);
  scene.expect_equal(fence_of(scene.pod(until_server(scene))), first + 1, "one more");
}

void a_job_made_anew_fences_the_former(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const int64_t first = fence_of(scene.pod("faces-server-0-0"));
  (void)scene.client().remove(kJobs, {scene.ns(), "faces"}).take();
  scene.until("its pods go", [&] {
    scene.finish_deletions();
    return scene.names().empty();
  });
  scene.create(scene.sample());
  scene.expect(fence_of(scene.pod(until_server(scene))) >= first, "no earlier attempt");
}

void a_pause_after_one_that_never_ran(Scene& scene, Surroundings&) {
  scene.start();
  scene.until_condition("Running", "False/Starting");
  scene.run("faces-server-0-0", false);
  scene.end("faces-server-0-0", {22});
  until_attempt(scene, 2);
  scene.stays(
      "nothing is made in the first seconds", [&] { return scene.server_of(2).empty(); },
      seconds(5));
  until_server(scene);
}

void no_pause_after_one_that_ran(Scene& scene, Surroundings&) {
  scene.start_and_run();
  fail_server(scene);
  scene.until_server_of(2, seconds(8));
}

void workers_live_on(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const std::string before = kube::uid_of(scene.pod("faces-worker-0-0"));
  fail_server(scene);
  until_attempt(scene, 2);
  run_again(scene);
  scene.expect_equal(kube::uid_of(scene.pod("faces-worker-0-0")), before, "the same worker");
  scene.expect(!kube::is_deleting(scene.pod("faces-worker-0-0")), "not to end");
}

void events_tell_cause_and_count(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end("faces-server-0-0", {22, "Error", "the disk is full"});
  until_attempt(scene, 2);
  scene.until("an event", [&] { return !scene.events("Restarting").empty(); });
  const std::string note = scene.events("Restarting")[0];
  scene.expect(note.find("restart 1 of 3") != std::string::npos, note);
  scene.expect(note.find("IoFailure: the disk is full") != std::string::npos, note);
}

}  // namespace

std::vector<Case> restart_cases() {
  return {{"APauseAfterOneThatNeverRan", a_pause_after_one_that_never_ran},
          {"ItRunsAgain", it_runs_again},
          {"NoMoreThanMaxRestarts", max_restarts},
          {"NoRestartAtAll", no_restart_at_all},
          {"MaxRestartsRaisedMeanwhile", max_restarts_raised_meanwhile},
          {"DisruptionsDoNotCount", disruptions_do_not_count},
          {"ADrainGivesItsGraceAndDoesNotCount", a_drain_with_grace},
          {"AnEvictionThroughTheApiDoesNotCount", an_eviction_through_the_api},
          {"AServerThatSomebodyDeletesDoesNotCount", somebody_deletes_a_server},
          {"AServerThatVanishesDoesNotCount", a_server_vanishes},
          {"AServerThatVanishesBeforeItRan", a_server_vanishes_before_it_ran},
          {"AllRanksRestartTogether", all_ranks_together},
          {"RanksThatFailTogetherCountOnce", ranks_that_fail_together_count_once},
          {"TheServiceFollowsTheAttempt", the_service_follows_the_attempt},
          {"AConfigMapForEachAttempt", a_config_map_for_each_attempt},
          {"LaterAttemptsFenceFormerOnes", later_attempts_fence_former_ones},
          {"AJobMadeAnewFencesTheFormer", a_job_made_anew_fences_the_former},
          {"NoPauseAfterOneThatRan", no_pause_after_one_that_ran},
          {"WorkersLiveOn", workers_live_on},
          {"EventsTellCauseAndCount", events_tell_cause_and_count}};
}

}  // namespace outrigger::integration
