#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

void suspend(Scene& scene) { scene.change_spec({{"suspend", true}}); }
void resume(Scene& scene) { scene.change_spec({{"suspend", false}}); }

void until_suspended(Scene& scene) {
  scene.until("it is suspended", [&] {
    scene.finish_deletions();
    return scene.condition("Suspended") == "True/Suspended";
  });
}

void it_begins_suspended(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"suspend", true}}));
  scene.until_condition("Suspended", "True/Suspended");
  scene.stays(
      "no pod is made", [&] { return scene.names().empty(); }, seconds(1));
  scene.expect(scene.at("/startTime").is_null(), "no startTime");
  scene.expect_equal(scene.at("/state"), "Suspended", "state");
  resume(scene);
  scene.until_pods({"faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"});
  scene.expect_equal(scene.condition("Suspended"), "False/Resumed", "Suspended");
}

void servers_end_first(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  scene.until("the server is to end",
              [&] { return kube::is_deleting(scene.pod("faces-server-0-0")); });
  scene.stays(
      "workers help until it has",
      [&] { return !kube::is_deleting(scene.pod("faces-worker-0-0")); }, seconds(1));
  scene.expect_equal(scene.condition("Suspended"), "False/Suspending", "Suspended");
  scene.end("faces-server-0-0", {20});
  scene.until("workers are to end", [&] {
    return kube::is_deleting(scene.pod("faces-worker-0-0")) &&
           kube::is_deleting(scene.pod("faces-worker-1-0"));
  });
  scene.expect_equal(scene.condition("Suspended"), "False/Suspending", "not before all are gone");
  until_suspended(scene);
}

void what_a_suspended_job_shows(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  until_suspended(scene);
  scene.expect(scene.at("/startTime").is_null(), "startTime is cleared");
  scene.expect(scene.at("/images").is_null() || scene.at("/images").empty(), "no images");
  scene.expect_equal(scene.condition("Running"), "False/Suspended", "Running");
  scene.expect_equal(scene.at("/workers/summary"), "0/2", "workers");
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void it_goes_on(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  until_suspended(scene);
  resume(scene);
  scene.until("its pods are back", [&] { return scene.names().size() == 3; });
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  scene.expect_equal(scene.at("/executionAttempts"), 2, "attempts");
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
  scene.expect(scene.condition("Restarting").empty(), "no restart");
}

void many_times(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  for (int i = 0; i < 3; ++i) {
    suspend(scene);
    until_suspended(scene);
    resume(scene);
    scene.until("its pods are back", [&] { return scene.names().size() == 2; });
    scene.run_all();
    scene.until_condition("Running", "True/ServersReady");
  }
  scene.expect_equal(scene.at("/executionAttempts"), 4, "attempts");
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void while_it_starts(Scene& scene, Surroundings&) {
  scene.start();
  suspend(scene);
  until_suspended(scene);
  scene.expect_equal(scene.names().size(), 0, "pods");
}

void resumed_while_it_suspends(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  scene.until("the server is to end",
              [&] { return kube::is_deleting(scene.pod("faces-server-0-0")); });
  scene.until_condition("Suspended", "False/Suspending");
  resume(scene);
  scene.end("faces-server-0-0", {20});
  scene.until("the next server", [&] {
    scene.finish_deletions();
    const auto servers = scene.pods("server");
    return servers.size() == 1 && kube::label(servers[0], "outrigger.dev/attempt") == "2";
  });
  scene.until_condition("Suspended", "False/Resumed");
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void a_server_that_finishes_meanwhile(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  scene.until("the server is to end",
              [&] { return kube::is_deleting(scene.pod("faces-server-0-0")); });
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
}

void templates_change_while_suspended(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  until_suspended(scene);
  scene.change_spec(
      {{"workers", {{"template", {{"spec", {{"nodeSelector", {{"kind", "new"}}}}}}}}}});
  resume(scene);
  scene.until("its pods are back", [&] { return scene.names().size() == 3; });
  scene.expect_equal(scene.pod("faces-worker-0-0").at("/spec/nodeSelector/kind"_json_pointer),
                     "new", "template");
}

void an_edit_that_cannot_be_run(Scene& scene, Surroundings&) {
  scene.start_and_run();
  suspend(scene);
  until_suspended(scene);
  scene.change_spec({{"server", {{"gpus", 1}}}});  // without an image for them
  scene.until_condition("Suspended", "True/NotSupported");
  scene.change_spec({{"server", {{"gpus", 0}}}});
  scene.until_condition("Suspended", "True/Suspended");
  resume(scene);
  scene.until("its pods are back", [&] { return scene.names().size() == 3; });
}

void templates_do_not_change_while_it_runs(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const std::string text = scene.refused_change(
      {{"spec", {{"workers", {{"template", {{"spec", {{"nodeSelector", {{"kind", "new"}}}}}}}}}}}});
  scene.expect(text.find("workers") != std::string::npos, text);
}

void workers_scale_while_suspended(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"suspend", true}}));
  scene.until_condition("Suspended", "True/Suspended");
  (void)scene.client().scale(kJobs, {scene.ns(), "faces"}, 1).take();
  scene.until("it is seen", [&] { return scene.at("/workers/summary") == "0/1"; });
  resume(scene);
  scene.until_pods({"faces-server-0-0", "faces-worker-0-0"});
}

void a_failed_server_is_no_failure_then(Scene& scene, Surroundings&) {
  scene.start_and_run({{"failurePolicy", {{"maxRestarts", 0}}}});
  suspend(scene);
  scene.until("the server is to end",
              [&] { return kube::is_deleting(scene.pod("faces-server-0-0")); });
  scene.end("faces-server-0-0", {137});
  until_suspended(scene);
  scene.expect(scene.condition("Failed").empty(), "not failed");
}

}  // namespace

std::vector<Case> suspend_cases() {
  return {{"ItBeginsSuspended", it_begins_suspended},
          {"ServersEndFirst", servers_end_first},
          {"WhatASuspendedJobShows", what_a_suspended_job_shows},
          {"ItGoesOn", it_goes_on},
          {"ManyTimes", many_times},
          {"WhileItStarts", while_it_starts},
          {"ResumedWhileItSuspends", resumed_while_it_suspends},
          {"AServerThatFinishesMeanwhile", a_server_that_finishes_meanwhile},
          {"TemplatesChangeWhileSuspended", templates_change_while_suspended},
          {"AnEditThatCannotBeRunWaitsForAnother", an_edit_that_cannot_be_run},
          {"TemplatesDoNotChangeWhileItRuns", templates_do_not_change_while_it_runs},
          {"WorkersScaleWhileSuspended", workers_scale_while_suspended},
          {"AFailedServerIsNoFailureThen", a_failed_server_is_no_failure_then}};
}

}  // namespace outrigger::integration
