#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

/// An object that is not the job's and has the name of one of its children.
struct Squatter {
  std::string name;
  kube::Resource resource;
  Json object;
};

Json some_pod(const std::string& name) {
  const Json container{{"name", "main"}, {"image", "registry.example/else:1"}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}}},
          {"spec", {{"containers", Json::array({container})}}}};
}

std::vector<Squatter> squatters() {
  const Json ports = Json::array({{{"port", 80}}});
  return {
      {"Server", kPods, some_pod("faces-server-0-0")},
      {"Worker", kPods, some_pod("faces-worker-1-0")},
      {"Service",
       kServices,
       {{"apiVersion", "v1"},
        {"kind", "Service"},
        {"metadata", {{"name", "faces-server"}}},
        {"spec", {{"ports", ports}}}}},
      {"ConfigMap",
       kConfigMaps,
       {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "faces-config-1"}}}}},
      {"NetworkPolicy",
       kPolicies,
       {{"apiVersion", "networking.k8s.io/v1"},
        {"kind", "NetworkPolicy"},
        {"metadata", {{"name", "faces"}}},
        {"spec", {{"podSelector", Json::object()}}}}}};
}

void play(Scene& scene, Squatter squatter) {
  squatter.object["metadata"]["namespace"] = scene.ns();
  const Json made = scene.client().create(squatter.resource, squatter.object).take();
  scene.create(scene.sample());
  scene.until_condition("Failed", "True/NameCollision");
  const Json after = scene.get(squatter.resource, kube::name_of(made));
  scene.expect_equal(kube::uid_of(after), kube::uid_of(made), "the other's object is left alone");
  scene.expect(!kube::controller_of(after), "and not adopted");
  const std::string text = scene.message("Failed");
  scene.expect(text.find(kube::name_of(made)) != std::string::npos, text);
}

Json privileged(const std::string& role) {
  const Json container{
      {"name", role},
      {"securityContext", {{"privileged", true}, {"allowPrivilegeEscalation", true}}}};
  return {{"template", {{"spec", {{"containers", Json::array({container})}}}}}};
}

void pod_security_of_a_server(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"server", privileged("server")}}));
  scene.until_condition("Failed", "True/PodSecurity");
  scene.expect(scene.message("Failed").find("violates PodSecurity") != std::string::npos,
               scene.message("Failed"));
}

void pod_security_of_workers(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"workers", privileged("worker")}}));
  scene.until_condition("Failed", "True/PodSecurity");
}

void pod_security_put_on_a_running_job(Scene& scene, Surroundings& around) {
  scene.start_and_run({{"workers", privileged("worker")}});
  (void)around.client
      .patch(kNamespaces, {"", scene.ns()}, kube::PatchType::kMerge,
             {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}})
      .take();
  scene.vanish("faces-worker-0-0");
  scene.until_condition("Degraded", "True/PodSecurity");
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "the server goes on");
}

// A template that the CRD takes and the API server does not.
void a_pod_that_is_not_valid(Scene& scene, Surroundings&) {
  const Json mount{{"name", "nowhere"}, {"mountPath", "/x"}};
  const Json container{{"name", "server"}, {"volumeMounts", Json::array({mount})}};
  scene.create(scene.sample(
      {{"server", {{"template", {{"spec", {{"containers", Json::array({container})}}}}}}}}));
  scene.until_condition("Failed", "True/InvalidPod");
  scene.expect(scene.message("Failed").find("nowhere") != std::string::npos,
               scene.message("Failed"));
}

// The operator reads ports, and leaves it to the API server to name what is wrong.
void a_port_that_is_a_text(Scene& scene, Surroundings&) {
  const Json port{{"containerPort", "9000"}};
  const Json container{{"name", "server"}, {"ports", Json::array({port})}};
  scene.create(scene.sample(
      {{"server", {{"template", {{"spec", {{"containers", Json::array({container})}}}}}}}}));
  scene.until_condition("Failed", "True/InvalidPod");
  scene.expect(scene.message("Failed").find("containerPort") != std::string::npos,
               scene.message("Failed"));
}

void an_unknown_priority_class(Scene& scene, Surroundings&) {
  scene.create(
      scene.sample({{"server", {{"template", {{"spec", {{"priorityClassName", "none-such"}}}}}}}}));
  scene.until("the server's text is told", [&] {
    return scene.message("PodsScheduled").find("none-such") != std::string::npos;
  });
  scene.expect(scene.condition("Failed").empty(), "somebody may make it yet");
}

void a_namespace_that_ends(Scene& scene, Surroundings& around) {
  scene.start_and_run();
  (void)around.client.remove(kNamespaces, {"", scene.ns()}).take();
  scene.until("the namespace and all in it is gone", [&] {
    scene.finish_deletions();
    return !around.client.get(kNamespaces, {"", scene.ns()});
  });
}

void a_namespace_that_ends_is_no_failure(Scene& scene, Surroundings& around) {
  Json held = scene.sample();
  held["metadata"]["finalizers"] = Json::array({"outrigger.dev/test"});
  scene.create(held);
  scene.until_pods({"faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"});
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  (void)around.client.remove(kNamespaces, {"", scene.ns()}).take();
  scene.until("its pods go", [&] {
    scene.finish_deletions();
    return scene.names().empty();
  });
  scene.stays(
      "it does not fail", [&] { return scene.condition("Failed").empty(); }, seconds(2));
  scene.change({{"metadata", {{"finalizers", nullptr}}}});
  scene.until("the namespace is gone", [&] {
    return !around.client.get(kNamespaces, {"", scene.ns()});
  });
}

// What is valid and not built yet.
Case unsupported(const std::string& name, const Json& more, const std::string& in_message) {
  return {name, [more, in_message](Scene& scene, Surroundings&) {
            scene.create(scene.sample(more));
            scene.until_condition("Failed", "True/NotSupported");
            const std::string text = scene.message("Failed");
            scene.expect(text.find(in_message) != std::string::npos, text);
            scene.expect(scene.names().empty(), "no pod was made");
          }};
}

void a_label_of_a_queue(Scene& scene, Surroundings&) {
  Json job = scene.sample();
  job["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "team-a"}};
  scene.create(job);
  scene.until_condition("Failed", "True/NotSupported");
  const std::string text = scene.message("Failed");
  scene.expect(text.find("take kueue.x-k8s.io/queue-name off") != std::string::npos, text);
  scene.expect(scene.names().empty(), "no pod was made");
}

void a_queue_without_kueue(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"schedulingPolicy", {{"queue", "team-a"}}}}));
  scene.until_condition("Suspended", "True/Queued");
  const std::string text = scene.message("Suspended");
  scene.expect(text.find("is Kueue installed") != std::string::npos, text);
  scene.expect_equal(scene.at("/state"), "Queued", "state");
  scene.stays(
      "no pod is made", [&] { return scene.names().empty(); }, seconds(1));
}

}  // namespace

void a_job_that_somebody_else_manages(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"managedBy", "kueue.x-k8s.io/multikueue"}}));
  Json ours = scene.sample();
  ours["metadata"]["name"] = "ours";
  (void)scene.client().create(kJobs, ours).take();
  scene.until("our job is worked on", [&] {
    const auto job = scene.client().get(kJobs, {scene.ns(), "ours"});
    return job && job->contains("status");
  });
  scene.expect(!scene.job().contains("status"), "the other job's status is its manager's");
  for (const Json& pod : scene.client().list(kPods, {.ns = scene.ns()}).take())
    scene.expect(kube::name_of(pod).starts_with("ours-"), "no pod of it");
}

std::vector<Case> refusal_cases() {
  std::vector<Case> cases{
      {"ANamespaceThatEnds", a_namespace_that_ends},
      {"ANamespaceThatEndsIsNoFailure", a_namespace_that_ends_is_no_failure},
      {"PodSecurityOfAServer",
       pod_security_of_a_server,
       {{"pod-security.kubernetes.io/enforce", "restricted"}}},
      {"PodSecurityOfWorkers",
       pod_security_of_workers,
       {{"pod-security.kubernetes.io/enforce", "baseline"}}},
      {"PodSecurityPutOnARunningJob", pod_security_put_on_a_running_job},
      {"APodThatIsNotValid", a_pod_that_is_not_valid},
      {"APortThatIsAText", a_port_that_is_a_text},
      {"AnUnknownPriorityClass", an_unknown_priority_class},
      {"AQueueThatOnlyALabelNames", a_label_of_a_queue},
      {"AQueueWithoutKueue", a_queue_without_kueue},
      {"AJobThatSomebodyElseManages", a_job_that_somebody_else_manages},
      unsupported("Volcano", {{"schedulingPolicy", {{"gang", "Volcano"}}}},
                  "spec.schedulingPolicy.gang: Volcano is not built yet"),
      unsupported("Encryption", {{"network", {{"encryption", "TLS"}}}}, "spec.network.encryption"),
      unsupported("AGpuWithoutAnImageForIt", {{"server", {{"gpus", 1}}}}, "spec.server.gpus"),
      unsupported("ARelativeOutput", {{"output", {{"path", "runs"}}}}, "spec.output.path"),
      unsupported("ARelativeCheckpoint", {{"checkpoint", {{"path", "saved"}}}},
                  "spec.checkpoint.path")};
  for (size_t i = 0; i < squatters().size(); ++i) {
    // Resources of other files may not be there yet while tables are made.
    cases.push_back({"NameCollisionOf" + squatters()[i].name,
                     [i](Scene& scene, Surroundings&) { play(scene, squatters()[i]); }});
  }
  return cases;
}

}  // namespace outrigger::integration
