#include "operator/names.h"
#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

void scale(Scene& scene, int replicas) {
  (void)scene.client().scale(kJobs, {scene.ns(), "faces"}, replicas).take();
}

std::vector<std::string> living_workers(Scene& scene) {
  std::vector<std::string> names;
  for (const Json& pod : scene.pods("worker")) {
    const std::string phase = pod.value("/status/phase"_json_pointer, "");
    if (!kube::is_deleting(pod) && phase != "Failed" && phase != "Succeeded")
      names.push_back(kube::name_of(pod));
  }
  return names;
}

void until_workers(Scene& scene, const std::vector<std::string>& wanted) {
  scene.until("living workers are " + Json(wanted).dump(),
              [&] { return living_workers(scene) == wanted; });
}

void more(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const std::string before = kube::uid_of(scene.pod("faces-worker-0-0"));
  scale(scene, 4);
  until_workers(scene,
                {"faces-worker-0-0", "faces-worker-1-0", "faces-worker-2-0", "faces-worker-3-0"});
  scene.expect_equal(kube::uid_of(scene.pod("faces-worker-0-0")), before, "the first is as it was");
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
  scene.until("the number shows", [&] { return scene.at("/workers/summary") == "2/4"; });
}

void fewer(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 4}}}});
  scale(scene, 2);
  until_workers(scene, {"faces-worker-0-0", "faces-worker-1-0"});
  scene.finish_deletions();
  scene.until("the number shows", [&] { return scene.at("/workers/summary") == "2/2"; });
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "Running");
}

void none_and_back(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scale(scene, 0);
  until_workers(scene, {});
  scene.finish_deletions();
  scene.until_condition("PodsReady", "True/Ready");
  scale(scene, 1);
  // It has another number where the operator has not seen yet that the first is gone.
  scene.until("a worker is there again", [&] { return living_workers(scene).size() == 1; });
}

void by_the_spec(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.change_spec({{"workers", {{"replicas", 3}}}});
  until_workers(scene, {"faces-worker-0-0", "faces-worker-1-0", "faces-worker-2-0"});
}

void the_scale_subresource(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const Json scale = scene.client().get(kJobs, {scene.ns(), "faces"}, "scale").take();
  scene.expect_equal(scale.at("/spec/replicas"_json_pointer), 2, "wanted");
  scene.expect_equal(scale.at("/status/replicas"_json_pointer), 2, "there");
  const std::string selector = scale.at("/status/selector"_json_pointer);
  const auto selected = scene.client().list(kPods, {.ns = scene.ns(), .labels = selector}).take();
  scene.expect_equal(selected.size(), 2, "pods that its selector finds: " + selector);
}

void up_and_down_quickly(Scene& scene, Surroundings&) {
  scene.start();
  for (const int replicas : {6, 1, 5, 0, 3}) scale(scene, replicas);
  // Three there were on the way as well: only what the operator says of the last number ends the
  // wait.
  scene.until("three workers, as the last number wants", [&] {
    scene.finish_deletions();
    return scene.at("/observedGeneration") == scene.job().at("/metadata/generation"_json_pointer) &&
           living_workers(scene).size() == 3;
  });
  scene.stays(
      "and it stays so", [&] { return living_workers(scene).size() == 3; }, seconds(2));
}

void a_number_is_never_used_twice_at_once(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.remove("faces-worker-0-0");
  until_workers(scene, {"faces-worker-0-1", "faces-worker-1-0"});
  scene.expect(kube::is_deleting(scene.pod("faces-worker-0-0")), "the former has not gone yet");
}

void a_worker_that_vanishes(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const std::string before = kube::uid_of(scene.pod("faces-worker-0-0"));
  scene.vanish("faces-worker-0-0");
  scene.until("another", [&] {
    const auto living = living_workers(scene);
    return living.size() == 2 && kube::uid_of(scene.pod(living[0])) != before;
  });
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
}

int failures_of(const Json& pod) {
  return std::stoi(
      kube::annotation(pod, std::string(controller::kFailuresAnnotation)).value_or("0"));
}

void back_off_doubles(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  for (int i = 0; i < 4; ++i) {
    const std::string pod = "faces-worker-0-" + std::to_string(i);
    if (i > 0) scene.run(pod);
    scene.end(pod, {77});
    const auto ended = std::chrono::steady_clock::now();
    const std::string next = "faces-worker-0-" + std::to_string(i + 1);
    scene.until("the next worker", [&] { return scene.find(kPods, next).is_object(); });
    // Times in the API have whole seconds: up to one of the wait may be over when it begins.
    const auto waited = std::chrono::steady_clock::now() - ended;
    scene.expect(waited > seconds((1 << i) - 1), "waited long enough before " + next);
    scene.expect_equal(failures_of(scene.pod(next)), i + 1, "failures in a row");
  }
}

void one_failed_pod_is_kept(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  for (int i = 0; i < 3; ++i) {
    const std::string pod = "faces-worker-0-" + std::to_string(i);
    if (i > 0) scene.run(pod);
    scene.end(pod, {77});
    scene.until("the next worker", [&] {
      return scene.find(kPods, "faces-worker-0-" + std::to_string(i + 1)).is_object();
    });
  }
  scene.until("the last failed pod and the new one", [&] {
    scene.finish_deletions();
    return scene.names("worker") ==
           std::vector<std::string>{"faces-worker-0-2", "faces-worker-0-3"};
  });
}

void a_disrupted_worker_is_replaced_at_once(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  scene.add_condition("faces-worker-0-0", "DisruptionTarget", "PreemptionByScheduler");
  scene.end("faces-worker-0-0", {143});
  scene.until("another", [&] { return scene.find(kPods, "faces-worker-0-1").is_object(); });
  scene.expect_equal(failures_of(scene.pod("faces-worker-0-1")), 0, "no failure");
}

void degraded_and_well_again(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end("faces-worker-1-0", {77});
  scene.until_condition("Degraded", "True/ExitCode77");
  scene.expect_equal(scene.at("/state"), "Running", "state");
  scene.until("an event says so", [&] { return !scene.events("Degraded").empty(); });
  scene.until("another", [&] { return scene.find(kPods, "faces-worker-1-1").is_object(); });
  scene.run("faces-worker-1-1");
  scene.until_condition("Degraded", "False/WorkersWell");
}

void an_image_that_cannot_be_pulled(Scene& scene, Surroundings&) {
  scene.start();
  scene.run("faces-server-0-0");
  scene.wait_in("faces-worker-0-0", "ImagePullBackOff", "no such image");
  scene.until_condition("Degraded", "True/ImagePullBackOff");
  scene.expect(scene.message("Degraded").find("no such image") != std::string::npos,
               scene.message("Degraded"));
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "Running");
}

void an_image_name_that_is_none(Scene& scene, Surroundings&) {
  scene.start();
  scene.run("faces-server-0-0");
  scene.wait_in("faces-worker-0-0", "InvalidImageName", "bad name");
  scene.until_condition("Degraded", "True/InvalidImageName");
  scene.expect(scene.condition("Failed").empty(), "only a server's fails the job");
}

void a_foreign_second_pod_of_an_index(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  Json copy = scene.pod("faces-worker-0-0");
  const Json metadata = copy["metadata"];
  copy["metadata"] = {{"name", "faces-worker-0-7"},
                      {"namespace", scene.ns()},
                      {"labels", metadata["labels"]},
                      {"ownerReferences", metadata["ownerReferences"]}};
  copy["spec"].erase("nodeName");
  copy.erase("status");
  (void)scene.client().create(kPods, copy).take();
  scene.until("one of them goes", [&] { return living_workers(scene).size() == 1; });
}

void a_secret_deleted_meanwhile(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  const auto secrets = [&] { return scene.client().list(kSecrets, {.ns = scene.ns()}).take(); };
  const Json before = secrets().at(0);
  // So long it is believed to be there.
  scene.stays(
      "it runs", [&] { return scene.condition("Running") == "True/ServersReady"; }, seconds(31));
  (void)scene.client().remove(kSecrets, {scene.ns(), kube::name_of(before)}).take();
  scene.vanish("faces-worker-0-0");
  until_workers(scene, {"faces-worker-0-0"});
  const auto after = secrets();
  scene.expect_equal(after.size(), 1, "Secrets before the worker");
  scene.expect_equal(after[0].at("data"), before.at("data"), "its tokens");
}

}  // namespace

std::vector<Case> worker_cases() {
  return {{"ASecretDeletedMeanwhileIsThereForTheNextWorker", a_secret_deleted_meanwhile},
          {"BackOffDoubles", back_off_doubles},
          {"OneFailedPodIsKept", one_failed_pod_is_kept},
          {"More", more},
          {"Fewer", fewer},
          {"NoneAndBack", none_and_back},
          {"BySpec", by_the_spec},
          {"TheScaleSubresource", the_scale_subresource},
          {"UpAndDownQuickly", up_and_down_quickly},
          {"ANumberIsNeverUsedTwiceAtOnce", a_number_is_never_used_twice_at_once},
          {"AWorkerThatVanishes", a_worker_that_vanishes},
          {"ADisruptedWorkerIsReplacedAtOnce", a_disrupted_worker_is_replaced_at_once},
          {"DegradedAndWellAgain", degraded_and_well_again},
          {"AnImageThatCannotBePulled", an_image_that_cannot_be_pulled},
          {"AnImageNameThatIsNone", an_image_name_that_is_none},
          {"ASecondPodOfAnIndexGoes", a_foreign_second_pod_of_an_index}};
}

}  // namespace outrigger::integration
