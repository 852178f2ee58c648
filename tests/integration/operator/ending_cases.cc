#include <algorithm>

#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

enum class How { kCompletes, kFails };

bool is_over(const Json& pod) {
  const std::string phase = pod.value("/status/phase"_json_pointer, "");
  return phase == "Failed" || phase == "Succeeded";
}

bool is_clean(const std::vector<Json>& pods, const std::string& policy, How how) {
  if (policy == "All") return pods.empty();
  if (policy == "None" && how == How::kCompletes)
    return std::none_of(pods.begin(), pods.end(), kube::is_deleting);
  return std::all_of(pods.begin(), pods.end(), is_over);
}

// Worker 0 has failed, worker 1 runs, and the server ends; `left` is to be there afterwards.
Case cleaning(const std::string& name, How how, const char* policy,
              const std::vector<std::string>& left) {
  return {name, [how, policy, left](Scene& scene, Surroundings&) {
            scene.start_and_run({{"cleanPodPolicy", policy}});
            scene.end("faces-worker-0-0", {77});
            scene.end("faces-server-0-0", {how == How::kCompletes ? 0 : 13});
            scene.until("it has ended", [&] { return scene.at("/completionTime").is_string(); });
            const auto as_wanted = [&] {
              scene.finish_deletions();
              for (const std::string& pod : left) {
                if (scene.find(kPods, pod).is_null()) return false;
              }
              return is_clean(scene.pods(), policy, how);
            };
            scene.until("pods are cleaned up: " + std::string(policy), as_wanted);
            scene.stays("and stay so", as_wanted, seconds(1));
          }};
}

void a_time_to_live(Scene& scene, Surroundings&) {
  scene.start_and_run({{"ttlSecondsAfterFinished", 3}});
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
  scene.stays(
      "it has its time", [&] { return scene.find(kJobs, "faces").is_object(); }, seconds(1));
  scene.until("the job is gone", [&] { return scene.find(kJobs, "faces").is_null(); });
}

void no_time_to_live(Scene& scene, Surroundings&) {
  scene.start_and_run({{"ttlSecondsAfterFinished", 0}});
  scene.end("faces-server-0-0", {13});
  scene.until("the job is gone", [&] { return scene.find(kJobs, "faces").is_null(); });
}

void it_is_kept(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
  scene.stays(
      "it is kept", [&] { return scene.find(kJobs, "faces").is_object(); }, seconds(4));
}

// By the real garbage collector.
void its_children_go_with_it(Scene& scene, Surroundings&) {
  scene.start_and_run();
  (void)scene.client().remove(kJobs, {scene.ns(), "faces"}).take();
  scene.until("all of it is gone", [&] {
    scene.finish_deletions();
    bool gone = scene.find(kJobs, "faces").is_null();
    for (const auto& resource : {kPods, kServices, kSecrets, kPolicies})
      gone = gone && scene.client().list(resource, {.ns = scene.ns()}).take().empty();
    return gone && scene.find(kConfigMaps, "faces-config-1").is_null();
  });
}

void deleted_in_the_foreground(Scene& scene, Surroundings&) {
  scene.start_and_run();
  (void)scene.client()
      .remove(kJobs, {scene.ns(), "faces"}, {.propagation = kube::Propagation::kForeground})
      .take();
  scene.until("pods are to end", [&] {
    const auto pods = scene.pods();
    return !pods.empty() && kube::is_deleting(pods[0]);
  });
  scene.stays(
      "nothing is made anew meanwhile", [&] { return scene.names().size() <= 3; }, seconds(1));
  scene.until("the job is gone after them", [&] {
    scene.finish_deletions();
    return scene.find(kJobs, "faces").is_null();
  });
}

void pods_outlive_an_orphaning_delete(Scene& scene, Surroundings&) {
  scene.start_and_run();
  (void)scene.client()
      .remove(kJobs, {scene.ns(), "faces"}, {.propagation = kube::Propagation::kOrphan})
      .take();
  scene.until("the job is gone", [&] { return scene.find(kJobs, "faces").is_null(); });
  scene.stays(
      "its pods run on", [&] { return scene.names().size() == 3; }, seconds(2));
}

void made_anew_under_its_name(Scene& scene, Surroundings&) {
  scene.start_and_run();
  const std::string former = kube::uid_of(scene.job());
  (void)scene.client().remove(kJobs, {scene.ns(), "faces"}).take();
  scene.until("the job is gone", [&] { return scene.find(kJobs, "faces").is_null(); });
  // Pods of the former one still have their grace, and their names.
  scene.create(scene.sample());
  const std::string uid = kube::uid_of(scene.job());
  scene.until("three pods of the new job", [&] {
    scene.finish_deletions();
    const auto pods = scene.pods();
    return pods.size() == 3 && std::all_of(pods.begin(), pods.end(), [&](const Json& pod) {
             return kube::is_controlled_by(pod, uid);
           });
  });
  scene.expect(uid != former && scene.condition("Failed").empty(), "it has not failed");
  scene.until("its own Service", [&] {
    const Json service = scene.find(kServices, "faces-server");
    return service.is_object() && kube::is_controlled_by(service, uid);
  });
}

void two_jobs_beside_each_other(Scene& scene, Surroundings&) {
  Json other = scene.sample({{"workers", {{"replicas", 1}}}});
  other["metadata"]["name"] = "faces-server";  // its pods' names begin as the other's
  (void)scene.client().create(kJobs, other).take();
  scene.create(scene.sample({{"workers", {{"replicas", 1}}}}));
  scene.until_pods({"faces-server-0-0", "faces-server-server-0-0", "faces-server-worker-0-0",
                    "faces-worker-0-0"});
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
}

}  // namespace

std::vector<Case> ending_cases() {
  const std::string server = "faces-server-0-0";
  const std::string failed = "faces-worker-0-0";
  return {cleaning("CompleteCleansWhatRuns", How::kCompletes, "Running", {server, failed}),
          cleaning("CompleteCleansAll", How::kCompletes, "All", {}),
          cleaning("CompleteCleansNothing", How::kCompletes, "None",
                   {server, failed, "faces-worker-1-0"}),
          cleaning("FailedCleansWhatRuns", How::kFails, "Running", {server, failed}),
          cleaning("FailedCleansAll", How::kFails, "All", {}),
          cleaning("FailedCleansWhatRunsAnyway", How::kFails, "None", {server, failed}),
          {"ATimeToLive", a_time_to_live},
          {"NoTimeToLive", no_time_to_live},
          {"ItIsKept", it_is_kept},
          {"ItsChildrenGoWithIt", its_children_go_with_it},
          {"DeletedInTheForeground", deleted_in_the_foreground},
          {"PodsOutliveAnOrphaningDelete", pods_outlive_an_orphaning_delete},
          {"MadeAnewUnderItsName", made_anew_under_its_name},
          {"TwoJobsBesideEachOther", two_jobs_beside_each_other}};
}

}  // namespace outrigger::integration
