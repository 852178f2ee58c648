// What a user's pod template may say.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "operator/objects/pod.h"
#include "operator/objects/workload.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

// All that is read of a template, and of the kinds that it should be.
Json template_of(const std::string& container) {
  Json made = Json::parse(R"({
    "metadata": {
      "labels": {"team": "vision"},
      "annotations": {"kueue.x-k8s.io/podset-preferred-topology": "rack"}},
    "spec": {
      "affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}},
      "containers": [
        {"name": "sidecar"},
        {"image": "a/b", "args": ["--threads"], "env": [{"name": "A", "value": "b"}],
         "ports": [{"name": "metrics", "containerPort": 9000}],
         "readinessProbe": {"httpGet": {"port": 9000}},
         "resources": {"limits": {"cpu": "1"}, "requests": {"rdma/hca": "1"}},
         "securityContext": {"privileged": false, "capabilities": {"add": ["NET_ADMIN"]}},
         "terminationMessagePath": "/dev/log",
         "volumeMounts": [{"name": "mine", "mountPath": "/mine"}]}],
      "imagePullSecrets": [{"name": "mine"}],
      "nodeName": "node-0",
      "nodeSelector": {"disk": "fast"},
      "schedulingGates": [{"name": "mine"}],
      "securityContext": {"seccompProfile": {"type": "Localhost"}},
      "tolerations": [{"key": "pool"}],
      "volumes": [{"name": "mine", "emptyDir": {}}]}})");
  made["spec"]["containers"][1]["name"] = container;
  return made;
}

using Place = Json::json_pointer;

void add_places(const Json& value, const Place& at, std::vector<Place>& places) {
  const auto add = [&](const Json& member, const Place& place) {
    places.push_back(place);
    add_places(member, place, places);
  };
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) add(member, at / name);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) add(value[i], at / i);
  }
}

// A job whose pods get all that pods can get.
World demanding_world() {
  World world(
      "  workers: {replicas: 1}\n"
      "  server: {replicas: 2, gpus: 2}\n"
      "  schedulingPolicy: {queue: team-a, topologyKey: zone}\n");
  world.options.gpu = true;
  world.options.rdma = {
      .resources = {{"rdma/hca", 1}}, .variables = {{"NCCL_IB_HCA", "mlx5"}}, .lock_memory = true};
  world.options.image_pull_secrets = {"registry-key"};
  return world;
}

void make_everything(const World& world, api::Role role) {
  PodOrder order;
  order.place.role = role;
  order.image = wanted_image(world.job, role, world.options);
  Json pod = build_pod(world.job, order, world.options);
  Placement placement;
  placement.placed_by = "trainingjob-faces";
  placement.labels = {{"a", "b"}};
  placement.annotations = {{"a", "b"}};
  placement.node_selector = {{"a", "b"}};
  placement.tolerations.push_back({{"key", "pool"}, {"operator", "Exists"}});
  place_pod(pod, placement);
  (void)Create(ObjectKind::kPod, std::move(pod));
  (void)build_workload(world.job, world.options, std::nullopt);
  (void)outlives_server_pod(world.job, "/runs");
}

void expect_no_exception_whatever_is_of_another_kind(World& world, api::Role role) {
  const bool server = role == api::Role::kServer;
  auto& pod_template =
      server ? world.spec().server.pod_template : world.spec().workers.pod_template;
  const Json good = template_of(server ? "server" : "worker");
  std::vector<Place> places;
  add_places(good, Place(), places);
  for (const Place& place : places) {
    for (const char* other : {"null", "true", "7", R"("8080")", "[]", "[null]", R"(["a"])", "{}"}) {
      pod_template = good;
      (*pod_template)[place] = Json::parse(other);
      EXPECT_NO_THROW(make_everything(world, role)) << place.to_string() << ": " << other;
    }
  }
}

// Nobody but the API server, which names the field, says that it is not a pod's.
TEST(Template, WithAnyFieldOfAnotherKindMakesAPod) {
  World world = demanding_world();
  expect_no_exception_whatever_is_of_another_kind(world, api::Role::kServer);
  expect_no_exception_whatever_is_of_another_kind(world, api::Role::kWorker);
  world.spec().server.engine = api::Engine::kExternal;
  expect_no_exception_whatever_is_of_another_kind(world, api::Role::kServer);
}

TEST(Template, IsSentToTheApiServerAsItIsMistyped) {
  World world;
  world.spec().server.pod_template = Json::parse(
      R"({"spec": {"containers": [{"name": "server", "ports": [{"containerPort": "8080"}]}]}})");
  world.settle();
  const Json& container = world.pods.at("faces-server-0-0")["spec"]["containers"][0];
  EXPECT_EQ(container["ports"][0]["containerPort"], "8080");
}

Json container_with(const std::string& more) {
  const World world("  server: {template: {spec: {containers: [{name: server, " + more + "}]}}}\n");
  PodOrder order;
  order.image = "image:1";
  return build_pod(world.job, order, world.options)["spec"]["containers"][0];
}

TEST(Template, OfAProbeThatAsksInItsOwnWayGetsNoSecondHandler) {
  for (const char* handler :
       {"exec: {command: [test, -e, /ready]}", "tcpSocket: {port: 9000}", "grpc: {port: 9000}"}) {
    const Json probe =
        container_with("readinessProbe: {periodSeconds: 3, " + std::string(handler) + "}")
            .at("readinessProbe");
    EXPECT_EQ(probe.size(), 2U) << probe;
    EXPECT_EQ(probe["periodSeconds"], 3);
  }
}

TEST(Template, OfAProbeThatSaysOnlyWhenIsAskedAtTheStatusPort) {
  const Json probe = container_with("readinessProbe: {periodSeconds: 3}").at("readinessProbe");
  EXPECT_EQ(probe["httpGet"]["port"], 8080);
  EXPECT_EQ(probe["periodSeconds"], 3);
}

TEST(Template, OfAContainerThatMayEscalateItsPrivilegesIsNotContradicted) {
  for (const char* rights : {"privileged: true", "capabilities: {add: [SYS_ADMIN]}",
                             "capabilities: {add: [NET_ADMIN, CAP_SYS_ADMIN]}"}) {
    const Json security =
        container_with("securityContext: {" + std::string(rights) + "}").at("securityContext");
    EXPECT_FALSE(security.contains("allowPrivilegeEscalation")) << security;
    EXPECT_EQ(security["readOnlyRootFilesystem"], true) << "all else is as ever";
  }
  const Json usual = container_with("securityContext: {capabilities: {add: [NET_ADMIN]}}");
  EXPECT_EQ(usual["securityContext"]["allowPrivilegeEscalation"], false);
}

}  // namespace
}  // namespace outrigger::controller
