#include <algorithm>

#include "api/names.h"
#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

using Pointer = Json::json_pointer;

bool has(const Json& list, const Json& element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

Json arguments_of(Scene& scene, const std::string& pod) {
  return scene.pod(pod).at(Pointer("/spec/containers/0/args"));
}

std::string text(const Json& list) { return list.dump(); }

void pods_never_restart_in_place(Scene& scene, Surroundings&) {
  scene.start();
  for (const Json& pod : scene.pods()) {
    scene.expect_equal(pod.at(Pointer("/spec/restartPolicy")), "Never", "restartPolicy");
    scene.expect_equal(pod.at(Pointer("/spec/automountServiceAccountToken")), false, "no token");
    scene.expect_equal(pod.at(Pointer("/spec/containers/0/securityContext/readOnlyRootFilesystem")),
                       true, "read-only root");
  }
}

// The API server would refuse them else: the namespace enforces it.
void pods_meet_restricted(Scene& scene, Surroundings&) {
  scene.start_and_run({{"server", {{"replicas", 2}}}});
}

void a_server_has_a_name_of_its_own(Scene& scene, Surroundings&) {
  scene.start({{"server", {{"replicas", 2}}}});
  const Json pod = scene.pod("faces-server-1-0");
  scene.expect_equal(pod.at(Pointer("/spec/hostname")), "faces-server-1", "hostname");
  scene.expect_equal(pod.at(Pointer("/spec/subdomain")), "faces-server", "subdomain");
}

void a_server_is_not_safe_to_evict(Scene& scene, Surroundings&) {
  scene.start();
  const std::string key(api::kSafeToEvictAnnotation);
  scene.expect_equal(kube::annotation(scene.pod("faces-server-0-0"), key).value_or(""), "false",
                     "the server");
  scene.expect(!kube::annotation(scene.pod("faces-worker-0-0"), key), "a worker may go");
}

void a_server_has_the_grace_of_its_checkpoint(Scene& scene, Surroundings&) {
  scene.start({{"checkpoint", {{"gracePeriodSeconds", 77}}}});
  const Pointer grace("/spec/terminationGracePeriodSeconds");
  scene.expect_equal(scene.pod("faces-server-0-0").at(grace), 77, "the server's grace");
  scene.expect_equal(scene.pod("faces-worker-0-0").at(grace), 30, "a worker's grace");
}

void workers_are_told_where_to_join(Scene& scene, Surroundings&) {
  scene.start({{"server", {{"replicas", 2}}}});
  const std::string first = text(arguments_of(scene, "faces-worker-0-0"));
  const std::string second = text(arguments_of(scene, "faces-worker-1-0"));
  const std::string domain = ".faces-server." + scene.ns() + ".svc:29400";
  scene.expect(first.find("faces-server-0" + domain) != std::string::npos, first);
  scene.expect(second.find("faces-server-1" + domain) != std::string::npos, second);
}

void another_port_is_used_everywhere(Scene& scene, Surroundings&) {
  scene.start({{"network", {{"port", 31000}}}});
  scene.expect_equal(scene.get(kServices, "faces-server").at(Pointer("/spec/ports/0/port")), 31000,
                     "the service");
  const std::string worker = text(arguments_of(scene, "faces-worker-0-0"));
  scene.expect(worker.find(".svc:31000") != std::string::npos, worker);
}

void workers_leave_lost_nodes_soon(Scene& scene, Surroundings&) {
  scene.start();
  const Json tolerations = scene.pod("faces-worker-0-0").at(Pointer("/spec/tolerations"));
  for (const char* key : {"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"}) {
    scene.expect(has(tolerations, {{"key", key},
                                   {"operator", "Exists"},
                                   {"effect", "NoExecute"},
                                   {"tolerationSeconds", 10}}),
                 std::string(key) + " in " + tolerations.dump());
  }
}

void logs_show_our_container_first(Scene& scene, Surroundings&) {
  scene.start(
      {{"server",
        {{"template",
          {{"spec",
            {{"containers",
              Json::array({{{"name", "aside"},
                            {"image", "registry.example/aside:1"},
                            {"securityContext",
                             {{"allowPrivilegeEscalation", false},
                              {"capabilities", {{"drop", Json::array({"ALL"})}}}}}}})}}}}}}}});
  const Json pod = scene.pod("faces-server-0-0");
  scene.expect_equal(pod.at(Pointer("/spec/containers/0/name")), "server", "the first container");
  scene.expect_equal(pod.at(Pointer("/spec/containers/1/name")), "aside", "the second");
  scene.expect_equal(
      kube::annotation(pod, std::string(api::kDefaultContainerAnnotation)).value_or(""), "server",
      "kubectl logs");
}

void a_template_adds_and_overrides(Scene& scene, Surroundings&) {
  scene.start(
      {{"workers",
        {{"template",
          {{"metadata", {{"labels", {{"team", "vision"}}}, {"annotations", {{"note", "mine"}}}}},
           {"spec",
            {{"nodeSelector", {{"kind", "cpu"}}},
             {"containers",
              Json::array({{{"name", "worker"},
                            {"image", "registry.example/own:7"},
                            {"env", Json::array({{{"name", "A"}, {"value", "b"}}})}}})}}}}}}}});
  const Json pod = scene.pod("faces-worker-0-0");
  scene.expect_equal(pod.at(Pointer("/metadata/labels/team")), "vision", "label");
  scene.expect_equal(pod.at(Pointer("/metadata/annotations/note")), "mine", "annotation");
  scene.expect_equal(pod.at(Pointer("/spec/nodeSelector/kind")), "cpu", "nodeSelector");
  scene.expect_equal(pod.at(Pointer("/spec/containers/0/image")), "registry.example/own:7",
                     "image");
  scene.expect_equal(pod.at(Pointer("/spec/containers/0/env/0/name")), "A", "environment");
  scene.expect_equal(scene.at("/images/worker"), "registry.example/own:7", "status.images");
}

void a_template_cannot_take_our_labels(Scene& scene, Surroundings&) {
  scene.start({{"workers",
                {{"template",
                  {{"metadata",
                    {{"labels",
                      {{std::string(api::kJobNameLabel), "else"},
                       {std::string(api::kIndexLabel), "9"}}}}}}}}}});
  const Json labels = scene.pod("faces-worker-0-0").at(Pointer("/metadata/labels"));
  scene.expect_equal(labels.at(std::string(api::kJobNameLabel)), "faces", "job-name");
  scene.expect_equal(labels.at(std::string(api::kIndexLabel)), "0", "index");
}

// Beside what the template says our defaults would be refused.
void a_template_with_a_probe_and_rights_of_its_own(Scene& scene, Surroundings&) {
  const Json container{
      {"name", "server"},
      {"readinessProbe", {{"exec", {{"command", Json::array({"true"})}}}}},
      {"securityContext", {{"capabilities", {{"add", Json::array({"CAP_SYS_ADMIN"})}}}}}};
  scene.start({{"server", {{"template", {{"spec", {{"containers", Json::array({container})}}}}}}}});
  const Json made = scene.pod("faces-server-0-0").at(Pointer("/spec/containers/0"));
  scene.expect(!made.at("readinessProbe").contains("httpGet"), made.dump());
}

bool mounts(const Json& pod, const std::string& path, const std::string& claim) {
  std::string volume;
  for (const Json& mount : pod.at(Pointer("/spec/containers/0/volumeMounts"))) {
    if (mount.at("mountPath") == path) volume = mount.at("name");
  }
  for (const Json& one : pod.at(Pointer("/spec/volumes"))) {
    if (one.at("name") == volume && one.contains("persistentVolumeClaim"))
      return one.at("persistentVolumeClaim").at("claimName") == claim;
  }
  return false;
}

void claims_are_mounted(Scene& scene, Surroundings&) {
  scene.start({{"data", {{"volumeClaimName", "photos"}}},
               {"output", {{"path", "/runs"}, {"volumeClaimName", "results"}}},
               {"checkpoint", {{"path", "/saved"}, {"volumeClaimName", "states"}}}});
  const Json server = scene.pod("faces-server-0-0");
  scene.expect(mounts(server, "/data", "photos"), "the server reads data");
  scene.expect(mounts(server, "/runs", "results"), "the server writes results");
  scene.expect(mounts(server, "/saved", "states"), "the server writes checkpoints");
  const Json worker = scene.pod("faces-worker-0-0");
  scene.expect(mounts(worker, "/data", "photos"), "a worker reads data");
  scene.expect(!mounts(worker, "/runs", "results"), "a worker has no results");
}

void pull_secrets_are_added(Scene& scene, Surroundings&) {
  scene.start();
  for (const Json& pod : scene.pods())
    scene.expect(has(pod.at(Pointer("/spec/imagePullSecrets")), {{"name", "registry-key"}}),
                 "the operator's pull secret");
}

void placed_as_the_policy_says(Scene& scene, Surroundings&) {
  scene.start({{"schedulingPolicy",
                {{"priorityClassName", "system-cluster-critical"},
                 {"topologyKey", "topology.kubernetes.io/zone"}}}});
  for (const Json& pod : scene.pods()) {
    scene.expect_equal(pod.at("spec").value("priorityClassName", ""), "system-cluster-critical",
                       "priority class");
    const Json& terms = pod.at(
        "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution"_json_pointer);
    scene.expect_equal(terms.at(0).at("topologyKey"), "topology.kubernetes.io/zone", "topology");
  }
}

}  // namespace

std::vector<Case> pod_cases() {
  const Json restricted{{"pod-security.kubernetes.io/enforce", "restricted"}};
  return {{"PodsNeverRestartInPlace", pods_never_restart_in_place},
          {"PlacedAsThePolicySays", placed_as_the_policy_says},
          {"PodsMeetTheRestrictedStandard", pods_meet_restricted, restricted},
          {"AServerHasAHostNameOfItsOwn", a_server_has_a_name_of_its_own},
          {"AServerIsNotSafeToEvict", a_server_is_not_safe_to_evict},
          {"AServerHasTheGraceOfItsCheckpoint", a_server_has_the_grace_of_its_checkpoint},
          {"WorkersAreToldWhereToJoin", workers_are_told_where_to_join},
          {"AnotherPortIsUsedEverywhere", another_port_is_used_everywhere},
          {"WorkersLeaveLostNodesSoon", workers_leave_lost_nodes_soon},
          {"OurContainerComesFirst", logs_show_our_container_first, restricted},
          {"ATemplateAddsAndOverrides", a_template_adds_and_overrides},
          {"ATemplateWithAProbeAndRightsOfItsOwn", a_template_with_a_probe_and_rights_of_its_own},
          {"ATemplateCannotTakeOurLabels", a_template_cannot_take_our_labels},
          {"ClaimsAreMounted", claims_are_mounted},
          {"PullSecretsAreAdded", pull_secrets_are_added}};
}

}  // namespace outrigger::integration
