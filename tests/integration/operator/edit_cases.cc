#include <thread>

#include "kube/client/base64.h"
#include "tests/integration/operator/cases.h"
#include "tests/integration/operator/status_page.h"

namespace outrigger::integration {
namespace {

// Each changes something else of the job again and again; none may cost the operator its status.
void many_writers(Scene& scene, Surroundings& around) {
  scene.start_and_run();
  const kube::ObjectKey key{scene.ns(), "faces"};
  const auto write = [&](const std::function<Json(int)>& patch) {
    for (int i = 0; i < 15; ++i)
      (void)around.client.patch(kJobs, key, kube::PatchType::kMerge, patch(i)).take();
  };
  {
    std::vector<std::jthread> writers;
    writers.emplace_back([&] {
      write([](int i) { return Json{{"metadata", {{"labels", {{"i", std::to_string(i)}}}}}}; });
    });
    writers.emplace_back([&] {
      write([](int i) {
        return Json{{"metadata", {{"annotations", {{"i", std::to_string(i)}}}}}};
      });
    });
    writers.emplace_back([&] {
      write([](int i) { return Json{{"spec", {{"ttlSecondsAfterFinished", 1000 + i}}}}; });
    });
    writers.emplace_back([&] {
      write([](int i) { return Json{{"spec", {{"workers", {{"replicas", 1 + i % 4}}}}}}; });
    });
  }
  scene.change_spec({{"workers", {{"replicas", 3}}}});
  scene.until("what was asked last", [&] {
    scene.finish_deletions();
    scene.run_all();
    return scene.at("/workers/summary") == "3/3" && scene.names("worker").size() == 3;
  });
  scene.expect_equal(scene.at("/observedGeneration"), scene.job().at("metadata").at("generation"),
                     "observedGeneration");
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void writes_while_it_restarts(Scene& scene, Surroundings& around) {
  scene.start_and_run();
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      (void)around.client.patch(kJobs, {scene.ns(), "faces"}, kube::PatchType::kMerge,
                                {{"metadata", {{"labels", {{"i", std::to_string(i)}}}}}});
      // A writer without a pause makes every status stale before it arrives.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  scene.end("faces-server-0-0", {22});
  scene.run(scene.until_server_of(2));
  scene.until_condition("Running", "True/ServersReady");
  writer = {};
  scene.expect_equal(scene.at("/restarts"), 1, "counted once");
  scene.expect_equal(scene.at("/executionAttempts"), 2, "attempts");
}

/// Writes one field of the status, though the operator may write beside it.
void overwrite_status(Scene& scene, Surroundings& around, const char* pointer, const Json& value) {
  scene.until("the status is written", [&] {
    Json job = scene.job();
    job[Json::json_pointer(pointer)] = value;
    const auto written = around.client.update_status(kJobs, job);
    scene.expect(written || written.error().conflict(), "refused for another reason");
    return static_cast<bool>(written);
  });
}

// A second operator of another version, say: what it writes is not what this one last read.
void another_writes_the_status(Scene& scene, Surroundings& around) {
  scene.start_and_run();
  overwrite_status(scene, around, "/status/workers/summary", "99/99");
  scene.until("it is put right", [&] { return scene.at("/workers/summary") == "2/2"; });
}

void the_count_is_not_lost_in_a_conflict(Scene& scene, Surroundings& around) {
  scene.start_and_run();
  overwrite_status(scene, around, "/status/restarts", 2);
  scene.end("faces-server-0-0", {22});
  scene.until("it counts on", [&] { return scene.at("/restarts") == 3; });
}

void a_pod_loses_its_labels(Scene& scene, Surroundings& around) {
  scene.start_and_run();
  (void)around.client
      .patch(kPods, {scene.ns(), "faces-worker-0-0"}, kube::PatchType::kMerge,
             {{"metadata", {{"labels", {{"app.kubernetes.io/managed-by", nullptr}}}}}})
      .take();
  // No watch shows it any more, and its name is taken: it is found again, and not made twice.
  scene.stays(
      "it is neither lost nor doubled", [&] { return scene.names("worker").size() == 2; },
      seconds(5));
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "the server goes on");
  scene.vanish("faces-worker-0-0");
  scene.until(
      "another takes its place", [&] { return scene.names("worker").size() == 2; }, seconds(150));
}

void an_immutable_field(Scene& scene, Surroundings&) {
  scene.start();
  const std::string text = scene.refused_change({{"spec", {{"training", {{"epochs", 9}}}}}});
  scene.expect(text.find("may not be changed") != std::string::npos, text);
  scene.refused_change({{"spec", {{"model", {{"name", "iresnet18"}}}}}});
  scene.refused_change({{"spec", {{"managedBy", "kueue.x-k8s.io/multikueue"}}}});
}

void servers_stay_while_it_runs(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.refused_change({{"spec", {{"server", {{"replicas", 2}}}}}});
}

std::string control_token(Scene& scene) {
  const Json secret = scene.client().list(kSecrets, {.ns = scene.ns()}).take().at(0);
  return kube::decode_base64(secret.at("data").at("control-token").get<std::string>()).value_or("");
}

// It begins with what it read when its attempt began, and is told the rest.
void a_split_reaches_its_server(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.7");
  page.open_door();
  scene.start_and_run();
  page.stand_for(scene, "faces-server-0-0");
  scene.until("it is told the job as it is", [&] { return page.told().size() == 1; });
  scene.change_spec({{"split", {{"minServerPercent", 42}}}});
  scene.until("it is told the edit", [&] { return page.told().size() == 2; });
  const StatusPage::Told told = page.told().at(1);
  scene.expect_equal(told.authorization, "Bearer " + control_token(scene), "the token");
  scene.expect_equal(told.body.at("generation"), scene.job().at("metadata").at("generation"),
                     "the generation");
  scene.expect_equal(told.body.at("job").at("spec").at("split").at("minServerPercent"), 42,
                     "the split");
  scene.stays(
      "it is told no more than once", [&] { return page.told().size() == 2; }, seconds(15));
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
  scene.expect(scene.events("EditRefused").empty(), "nothing was refused");
}

void a_refused_edit(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.8");
  page.open_door();
  scene.start_and_run();
  page.stand_for(scene, "faces-server-0-0");
  scene.until("it is told the job as it is", [&] { return page.told().size() == 1; });
  const std::string why = "spec.split.cut: this network has no layer conv9";
  const std::string told = why + "; its next attempt may begin with this spec: edit it again";
  page.refuse_edits(why);
  scene.change_spec({{"split", {{"cut", "conv9"}}}});
  scene.until("it is told to people", [&] { return !scene.events("EditRefused").empty(); });
  scene.stays(
      "once", [&] { return scene.events("EditRefused") == std::vector<std::string>{told}; },
      seconds(15));
  scene.expect_equal(page.told().size(), 2, "what it was told");
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "it goes on");
}

void a_typing_error_is_refused(Scene& scene, Surroundings& around) {
  Json job = scene.sample();
  job["spec"]["trainnig"] = Json::object();
  const auto result = around.client.create(kJobs, job);
  scene.expect(!result && result.error().code() == 400, "strict decoding");
  scene.expect(std::string(result.error().what()).find("trainnig") != std::string::npos,
               result.error().what());
}

// 250 KiB is what annotations may have; the operator must neither fail nor copy them.
void large_annotations(Scene& scene, Surroundings&) {
  Json job = scene.sample();
  job["metadata"]["annotations"] = {{"large", std::string(250'000, 'x')}};
  scene.create(job);
  scene.until_pods({"faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"});
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  scene.expect(scene.pod("faces-server-0-0").dump().size() < 100'000, "not copied");
}

Json template_of(const std::string& role, size_t bytes) {
  const Json variable{{"name", "LARGE"}, {"value", std::string(bytes, 'x')}};
  const Json container{{"name", role}, {"env", Json::array({variable})}};
  return {{"template", {{"spec", {{"containers", Json::array({container})}}}}}};
}

// A job of nearly 1 MiB, and pods as large: what etcd takes is 1.5 MiB.
void a_job_of_a_mebibyte(Scene& scene, Surroundings&) {
  scene.start_and_run({{"server", template_of("server", 950'000)}});
  scene.expect(scene.pod("faces-server-0-0").dump().size() > 950'000, "the pod has it all");
  scene.expect(scene.get(kConfigMaps, "faces-config-1").dump().size() < 20'000, "the map has not");
  scene.end("faces-server-0-0", {22});
  scene.until_server_of(2);
}

void a_long_message(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end("faces-server-0-0", {13, "Error", std::string(4096, 'y')});
  scene.until_condition("Failed", "True/NumericalError");
  scene.expect(scene.at("/lastFailure/message").get<std::string>().size() >= 1000, "it is kept");
}

void many_jobs_come_and_go(Scene& scene, Surroundings& around) {
  for (int i = 0; i < 30; ++i) {
    Json job = scene.sample({{"workers", {{"replicas", 1}}}, {"suspend", i % 2 == 1}});
    job["metadata"]["name"] = "many-" + std::to_string(i);
    (void)around.client.create(kJobs, job).take();
  }
  scene.until("fifteen jobs have their pods", [&] { return scene.names().size() == 30; });
  for (int i = 0; i < 30; ++i)
    (void)around.client.remove(kJobs, {scene.ns(), "many-" + std::to_string(i)}).take();
  scene.until("all pods are gone", [&] { return scene.names().empty(); });
}

}  // namespace

std::vector<Case> edit_cases() {
  return {{"ASplitReachesItsServer", a_split_reaches_its_server},
          {"ARefusedEditIsOneWarning", a_refused_edit},
          {"ManyJobsComeAndGo", many_jobs_come_and_go},
          {"ManyWriters", many_writers},
          {"WritesWhileItRestarts", writes_while_it_restarts},
          {"AnotherWritesTheStatus", another_writes_the_status},
          {"TheCountIsReadAnewAfterAConflict", the_count_is_not_lost_in_a_conflict},
          {"APodLosesItsLabels", a_pod_loses_its_labels},
          {"AnImmutableField", an_immutable_field},
          {"ServersStayWhileItRuns", servers_stay_while_it_runs},
          {"ATypingErrorIsRefused", a_typing_error_is_refused},
          {"LargeAnnotations", large_annotations},
          {"AJobOfAMebibyte", a_job_of_a_mebibyte},
          {"ALongMessage", a_long_message}};
}

}  // namespace outrigger::integration
