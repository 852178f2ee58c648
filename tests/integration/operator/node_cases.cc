#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

constexpr seconds kPatience{150};  // a lost node, a grace, and what is added to it

// The pod on a node of its own, whose kubelet then falls silent.
std::string on_lost_node(Scene& scene, Surroundings& around, const std::string& pod) {
  std::string node = scene.ns() + "-lost";
  around.nodes.add(node);
  scene.bind(pod, node);
  for (const std::string& other : scene.names()) scene.run(other);
  scene.until_condition("Running", "True/ServersReady");
  around.nodes.silence(node);
  return node;
}

// Real controllers: the Lease is not renewed, the node is unreachable, the pod is to be deleted.
void a_workers_node_is_lost(Scene& scene, Surroundings& around) {
  scene.start();
  on_lost_node(scene, around, "faces-worker-0-0");
  scene.until(
      "another worker", [&] { return scene.find(kPods, "faces-worker-0-1").is_object(); },
      kPatience);
  scene.expect(kube::is_deleting(scene.pod("faces-worker-0-0")), "the lost one is to be deleted");
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "the server goes on");
}

Json soon_evicted() {
  Json tolerations = Json::array();
  for (const char* key : {"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"}) {
    tolerations.push_back(
        {{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 1}});
  }
  return {{"template", {{"spec", {{"tolerations", tolerations}}}}}};
}

Json quick_server() {
  return {{"server", soon_evicted()}, {"checkpoint", {{"gracePeriodSeconds", 1}}}};
}

void a_servers_node_is_lost(Scene& scene, Surroundings& around) {
  scene.start(quick_server());
  on_lost_node(scene, around, "faces-server-0-0");
  scene.until(
      "the next server, after the grace of the lost one",
      [&] { return scene.find(kPods, "faces-server-0-1").is_object(); }, kPatience);
  scene.expect(kube::is_deleting(scene.pod("faces-server-0-0")),
               "the lost one is left to whoever knows its node");
  scene.expect_equal(scene.status().value("restarts", 0), 0, "restarts");
}

void a_lost_node_is_taken_away(Scene& scene, Surroundings& around) {
  scene.start(quick_server());
  const std::string node = on_lost_node(scene, around, "faces-server-0-0");
  scene.until(
      "the lost server is to be deleted",
      [&] { return kube::is_deleting(scene.pod("faces-server-0-0")); }, kPatience);
  (void)around.client.remove(kNodes, {"", node}).take();
  scene.until(
      "it is taken out of the API", [&] { return scene.find(kPods, "faces-server-0-0").is_null(); },
      kPatience);
  scene.until_server_of(2, kPatience);
}

void a_lost_node_is_out_of_service(Scene& scene, Surroundings& around) {
  scene.start(quick_server());
  const std::string node = on_lost_node(scene, around, "faces-server-0-0");
  scene.until(
      "the lost server is to be deleted",
      [&] { return kube::is_deleting(scene.pod("faces-server-0-0")); }, kPatience);
  Json taints =
      around.client.get(kNodes, {"", node})->value("/spec/taints"_json_pointer, Json::array());
  taints.push_back({{"key", "node.kubernetes.io/out-of-service"}, {"effect", "NoExecute"}});
  (void)around.client
      .patch(kNodes, {"", node}, kube::PatchType::kMerge, {{"spec", {{"taints", taints}}}})
      .take();
  const std::string former = kube::uid_of(scene.pod("faces-server-0-0"));
  scene.until(
      "it is taken out of the API",
      [&] {
        const Json now = scene.find(kPods, "faces-server-0-0");
        return now.is_null() || kube::uid_of(now) != former;
      },
      kPatience);
}

// While it suspends, a server on a lost node holds up nobody for ever.
void a_suspended_job_on_a_lost_node(Scene& scene, Surroundings& around) {
  scene.start(quick_server());
  const std::string node = on_lost_node(scene, around, "faces-server-0-0");
  scene.change_spec({{"suspend", true}});
  scene.until(
      "workers are to end after its grace",
      [&] {
        const Json worker = scene.find(kPods, "faces-worker-0-0");
        return worker.is_null() || kube::is_deleting(worker);
      },
      kPatience);
  (void)around.client.remove(kNodes, {"", node}).take();
  scene.until(
      "it is suspended",
      [&] {
        for (const Json& pod : scene.pods("worker")) scene.vanish(kube::name_of(pod));
        return scene.condition("Suspended") == "True/Suspended";
      },
      kPatience);
}

}  // namespace

std::vector<Case> node_cases() {
  return {{"AWorkersNodeIsLost", a_workers_node_is_lost},
          {"AServersNodeIsLost", a_servers_node_is_lost},
          {"ALostNodeIsTakenAway", a_lost_node_is_taken_away},
          {"ALostNodeIsOutOfService", a_lost_node_is_out_of_service},
          {"ASuspendedJobOnALostNode", a_suspended_job_on_a_lost_node}};
}

}  // namespace outrigger::integration
