#include "api/last_words.h"
#include "tests/integration/operator/cases.h"
#include "tests/integration/operator/status_page.h"

namespace outrigger::integration {
namespace {

void from_nothing_to_starting(Scene& scene, Surroundings&) {
  scene.start();
  scene.until_condition("Running", "False/Starting");
  scene.expect_equal(scene.at("/state"), "Starting", "state");
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
  scene.expect(scene.at("/startTime").is_string(), "startTime is set");
  scene.expect_equal(scene.condition("PodsScheduled"), "False/Pending", "PodsScheduled");
  scene.expect_equal(scene.condition("PodsReady"), "False/NotReady", "PodsReady");
  scene.expect_equal(scene.at("/observedGeneration"), 1, "observedGeneration");
}

void from_starting_to_running(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.until_condition("PodsReady", "True/Ready");
  scene.until_condition("PodsScheduled", "True/Scheduled");
  scene.expect_equal(scene.at("/state"), "Running", "state");
  scene.until("an event says so", [&] { return !scene.events("Running").empty(); });
}

void placed_and_not_ready(Scene& scene, Surroundings&) {
  scene.start();
  for (const std::string& pod : scene.names()) scene.run(pod, false);
  scene.until_condition("PodsScheduled", "True/Scheduled");
  scene.expect_equal(scene.condition("Running"), "False/Starting", "Running");
}

void the_server_alone_makes_it_run(Scene& scene, Surroundings&) {
  scene.start();
  scene.run("faces-server-0-0");
  scene.until_condition("Running", "True/ServersReady");
  scene.expect_equal(scene.condition("PodsReady"), "False/NotReady", "PodsReady");
}

void two_servers_are_both_needed(Scene& scene, Surroundings&) {
  scene.start({{"server", {{"replicas", 2}}}});
  scene.run("faces-server-0-0");
  scene.until("one of two is ready", [&] { return scene.at("/roles/0/ready") == 1; });
  scene.expect_equal(scene.condition("Running"), "False/Starting", "Running");
  scene.run("faces-server-1-0");
  scene.until_condition("Running", "True/ServersReady");
}

void readiness_that_is_lost_shows(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.run("faces-server-0-0", false);
  scene.until_condition("Running", "False/ReadinessLost");
  scene.run("faces-server-0-0", true);
  scene.until_condition("Running", "True/ServersReady");
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
}

void done_is_complete(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
  scene.expect_equal(scene.condition("Running"), "False/Ended", "Running");
  scene.expect_equal(scene.at("/state"), "Complete", "state");
  scene.expect(scene.at("/completionTime").is_string(), "completionTime is set");
  scene.until("an event says so", [&] { return !scene.events("Completed").empty(); });
}

void done_before_it_was_seen_ready(Scene& scene, Surroundings&) {
  scene.start();
  scene.run("faces-server-0-0", false);
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
}

void a_sidecar_that_runs_on_holds_nothing(Scene& scene, Surroundings&) {
  const Json aside{{"name", "aside"}, {"image", "registry.example/aside:1"}};
  scene.start_and_run(
      {{"server", {{"template", {{"spec", {{"containers", Json::array({aside})}}}}}}}});
  const Json pod = scene.pod("faces-server-0-0");
  const Json ended{{"terminated",
                    {{"exitCode", 0},
                     {"reason", "Completed"},
                     {"startedAt", now_text()},
                     {"finishedAt", now_text()}}}};
  Json other = container_status(pod, {{"running", {{"startedAt", now_text()}}}}, true);
  other["name"] = "aside";
  scene.patch_pod_status("faces-server-0-0",
                         {{"containerStatuses",
                           Json::array({container_status(pod, ended, false), std::move(other)})}});
  scene.until_condition("Complete", "True/Trained");
}

void all_ranks_have_to_end(Scene& scene, Surroundings&) {
  scene.start_and_run({{"server", {{"replicas", 2}}}});
  scene.end("faces-server-0-0", {0});
  scene.stays(
      "not complete while a rank runs", [&] { return scene.condition("Complete").empty(); },
      seconds(2));
  scene.end("faces-server-1-0", {0});
  scene.until_condition("Complete", "True/Trained");
}

void last_words_are_kept(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end(
      "faces-server-0-0",
      {0, "",
       api::to_json_text({.message = "done", .progress = {{"step", 500}, {"percent", 100}}})});
  scene.until_condition("Complete", "True/Trained");
  scene.expect_equal(scene.at("/progress/step"), 500, "the last step");
  scene.expect_equal(scene.at("/progress/percent"), 100, "the last percent");
}

// A server's own page at its pod's address.
void progress_is_asked_for(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.1");
  scene.start_and_run();
  page.stand_for(scene, "faces-server-0-0");
  scene.until("the step is in the status", [&] { return scene.at("/progress/step") == 7; });
  scene.expect_equal(scene.at("/progress/totalSteps"), 60, "totalSteps");
  scene.expect_equal(scene.at("/checkpoint/step"), 5, "the checkpoint's step");
  scene.expect_equal(scene.at("/checkpoint/path"), "/runs/faces/step-5", "the checkpoint's path");
  scene.expect_equal(scene.at("/split/plan"), 3, "the plan");
  scene.expect_equal(scene.at("/split/cut"), "conv1", "the cut");
}

void where_results_are_is_told(Scene& scene, Surroundings&) {
  scene.start();
  scene.until("the output's path", [&] { return scene.at("/output/path") == "/runs/faces"; });
}

void images_are_pinned_to_what_runs(Scene& scene, Surroundings&) {
  scene.start();
  scene.expect_equal(scene.at("/images/server"), "registry.example/outrigger-server:1", "first");
  scene.run_all();
  const std::string pinned = "registry.example/outrigger-server@sha256:" + std::string(64, 'a');
  scene.until("the digest is in the status", [&] { return scene.at("/images/server") == pinned; });
  scene.end("faces-server-0-0", {22});
  scene.expect_equal(
      scene.pod(scene.until_server_of(2)).at("/spec/containers/0/image"_json_pointer), pinned,
      "the next server's image");
}

void numbers_by_role(Scene& scene, Surroundings&) {
  scene.start({{"workers", {{"replicas", 3}}}});
  scene.run("faces-server-0-0");
  scene.run("faces-worker-0-0");
  scene.run("faces-worker-2-0");
  scene.until("2 of 3", [&] { return scene.at("/workers/summary") == "2/3"; });
  scene.expect_equal(scene.at("/roles/0"),
                     Json({{"name", "server"}, {"desired", 1}, {"ready", 1}, {"failed", 0}}),
                     "servers");
  scene.expect_equal(scene.at("/workers/replicas"), 3, "what the scale subresource shows");
}

void a_job_that_ended_is_left_alone(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
  const std::string text = scene.refused_change({{"spec", {{"workers", {{"replicas", 4}}}}}});
  scene.expect(text.find("the job has ended") != std::string::npos, text);
}

void a_job_that_ended_makes_nothing_new(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
  scene.finish_deletions();
  (void)scene.client().remove(kServices, {scene.ns(), "faces-server"}).take();
  scene.vanish("faces-server-0-0");
  scene.stays(
      "no new pod and no new Service",
      [&] {
        return scene.names("server").empty() && scene.find(kServices, "faces-server").is_null();
      },
      seconds(2));
  scene.expect_equal(scene.condition("Complete"), "True/Trained", "Complete");
}

// Its logs are what people want then.
void the_server_that_failed_is_kept(Scene& scene, Surroundings&) {
  scene.start_and_run();
  std::string failed = "faces-server-0-0";
  for (int attempt = 2; attempt <= 3; ++attempt) {
    scene.end(failed, {22});
    const std::string next = scene.until_server_of(attempt);
    scene.run(next);
    scene.until("the failed one and the next", [&] {
      scene.finish_deletions();
      return scene.names("server") == std::vector<std::string>{failed, next};
    });
    scene.expect_equal(scene.at("/lastFailure/pod"), failed, "lastFailure.pod");
    failed = next;
  }
}

}  // namespace

std::vector<Case> lifecycle_cases() {
  return {{"FromNothingToStarting", from_nothing_to_starting},
          {"FromStartingToRunning", from_starting_to_running},
          {"PlacedAndNotReady", placed_and_not_ready},
          {"TheServerAloneMakesItRun", the_server_alone_makes_it_run},
          {"TwoServersAreBothNeeded", two_servers_are_both_needed},
          {"ReadinessThatIsLostShows", readiness_that_is_lost_shows},
          {"DoneIsComplete", done_is_complete},
          {"DoneBeforeItWasSeenReady", done_before_it_was_seen_ready},
          {"ASidecarThatRunsOnHoldsNothing", a_sidecar_that_runs_on_holds_nothing},
          {"AllRanksHaveToEnd", all_ranks_have_to_end},
          {"LastWordsAreKept", last_words_are_kept},
          {"ProgressIsAskedFor", progress_is_asked_for},
          {"WhereResultsAreIsTold", where_results_are_is_told},
          {"ImagesArePinnedToWhatRuns", images_are_pinned_to_what_runs},
          {"NumbersByRole", numbers_by_role},
          {"TheServerThatFailedIsKept", the_server_that_failed_is_kept},
          {"AJobThatEndedIsLeftAlone", a_job_that_ended_is_left_alone},
          {"AJobThatEndedMakesNothingNew", a_job_that_ended_makes_nothing_new}};
}

}  // namespace outrigger::integration
