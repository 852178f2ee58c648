// An operator whose rights end at a namespace, as the chart's watchNamespace gives them.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "common/file.h"
#include "tests/integration/operator/outage.h"

namespace outrigger::integration {
namespace {

const kube::Resource kAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
const kube::Resource kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole",
                                   false};
const kube::Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role"};
const kube::Resource kBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"};
constexpr const char* kName = "limited";

bool belongs_to_a_namespace(const Json& rule) {
  const std::set<std::string> global{"nodes", "resourceflavors", "priorityclasses"};
  return !global.contains(rule.at("resources").at(0));
}

Json named(const kube::Resource& resource, const std::string& ns) {
  return {{"apiVersion", resource.api_version()},
          {"kind", resource.kind},
          {"metadata", {{"name", kName}, {"namespace", ns}}}};
}

class Rights : public Outage {
 protected:
  /// A kubeconfig for an account with our manifest's rights, in the scene's namespace alone, and
  /// with `more`.
  std::filesystem::path limited_kubeconfig(const Json& more = Json::array()) {
    const std::string& ns = scene_->ns();
    (void)client()->create(kAccounts, named(kAccounts, ns)).take();
    Json role = named(kRoles, ns);
    const Json all = client()->get(kClusterRoles, {"", "outrigger-system:outrigger"}).take();
    for (const Json& rule : all.at("rules")) {
      if (belongs_to_a_namespace(rule)) role["rules"].push_back(rule);
    }
    for (const Json& rule : more) role["rules"].push_back(rule);
    (void)client()->create(kRoles, role).take();
    Json binding = named(kBindings, ns);
    binding["roleRef"] = {
        {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", kName}};
    binding["subjects"] =
        Json::array({{{"kind", "ServiceAccount"}, {"name", kName}, {"namespace", ns}}});
    (void)client()->create(kBindings, binding).take();
    return write_kubeconfig(ns);
  }

  std::filesystem::path write_kubeconfig(const std::string& ns) {
    const kube::Resource tokens{"", "v1", "serviceaccounts/" + std::string(kName) + "/token",
                                "TokenRequest"};
    const Json request{{"apiVersion", "authentication.k8s.io/v1"},
                       {"kind", "TokenRequest"},
                       {"metadata", {{"namespace", ns}}},
                       {"spec", Json::object()}};
    const Json given = client()->create(tokens, request).take();
    const Json cluster_part{{"server", cluster()->admin().server},
                            {"certificate-authority", cluster()->admin().authorities.file}};
    const Json config{
        {"apiVersion", "v1"},
        {"kind", "Config"},
        {"current-context", kName},
        {"contexts",
         Json::array({{{"name", kName}, {"context", {{"cluster", kName}, {"user", kName}}}}})},
        {"clusters", Json::array({{{"name", kName}, {"cluster", cluster_part}}})},
        {"users",
         Json::array({{{"name", kName}, {"user", {{"token", given.at("status").at("token")}}}}})}};
    const auto path = cluster()->folder() / (ns + ".conf");
    write_file_atomically(path, config.dump());  // JSON is YAML
    return path;
  }

  void TearDown() override {
    if (HasFailure() && !operators_.empty()) ADD_FAILURE() << operators_.back()->log();
    Outage::TearDown();
  }

  /// How often its writes came too late, somebody else having written.
  static int conflicts_of(const OperatorProcess& process) {
    return requests(process, [](const std::string& line) {
      return line.find("code=\"409\"") != line.npos && line.find("method=\"PUT\"") != line.npos;
    });
  }

  OperatorProcess& start_limited() {
    return start_operator({"--kubeconfig", limited_kubeconfig().string(), "--namespace",
                           scene_->ns(), "--leader-elect", "false"});
  }
};

TEST_F(Rights, OfOneNamespaceAreEnoughForALifeWithRestartScalingAndPause) {
  Scene& scene = *scene_;
  const OperatorProcess& limited = start_limited();
  scene.start_and_run({{"workers", {{"replicas", 2}}}});
  scene.end("faces-server-0-0", {22});
  scene.until("the server is made anew", [&] { return !scene.server_of(2).empty(); });
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  EXPECT_EQ(scene.at("/restarts"), 1);
  scene.change_spec({{"workers", {{"replicas", 1}}}});
  scene.until("a worker is to end", [&] {
    scene.finish_deletions();
    return scene.names("worker").size() == 1;
  });
  scene.change_spec({{"suspend", true}});
  scene.until("it is suspended", [&] {
    scene.finish_deletions();
    return scene.condition("Suspended") == "True/Suspended";
  });
  EXPECT_EQ(limited.log().find("forbidden"), std::string::npos) << limited.log();
}

TEST_F(Rights, OfOneNamespaceAreEnoughWhereOthersWriteTheJobAllTheTime) {
  Scene& scene = *scene_;
  const OperatorProcess& limited = start_limited();
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  std::jthread others([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      const Json note{{"metadata", {{"annotations", {{"example.org/note", std::to_string(i)}}}}}};
      (void)client()->patch(kJobs, {scene.ns(), "faces"}, kube::PatchType::kMerge, note);
    }
  });
  bool ready = true;
  scene.until("a status was written too late", [&] {
    ready = !ready;
    scene.run("faces-worker-0-0", ready);
    return conflicts_of(limited) > 0;
  });
  others.request_stop();
  others.join();
  scene.run("faces-worker-0-0");
  scene.until_condition("PodsReady", "True/Ready");
  EXPECT_EQ(limited.log().find("forbidden"), std::string::npos) << limited.log();
}

TEST_F(Rights, MissingInOneNamespaceStopNoOther) {
  Scene& scene = *scene_;
  start_operator({"--kubeconfig", limited_kubeconfig().string(), "--namespace", "default",
                  "--namespace", scene.ns(), "--leader-elect", "false"});
  scene.start_and_run({{"workers", {{"replicas", 1}}}});
  scene.end("faces-server-0-0", {22});
  scene.until("the server is made anew", [&] { return !scene.server_of(2).empty(); });
  EXPECT_EQ(scene.at("/restarts"), 1);
}

TEST_F(Rights, OfOneNamespaceLeaveAQueuedJobWaitingWithoutKueue) {
  Scene& scene = *scene_;
  start_limited();
  scene.create(scene.sample({{"schedulingPolicy", {{"queue", "team-a"}}}}));
  scene.until_condition("Suspended", "True/Queued");
  EXPECT_THAT(scene.names(), testing::IsEmpty());
}

TEST_F(Rights, OfTheLeaseAloneMakeOneThatGoesWithTheOperatorsAccount) {
  Scene& scene = *scene_;
  const Json leases{{"apiGroups", {"coordination.k8s.io"}},
                    {"resources", {"leases"}},
                    {"verbs", {"create", "get", "update"}}};
  OperatorProcess& one =
      start_operator({"--kubeconfig", limited_kubeconfig(Json::array({leases})).string(),
                      "--namespace", scene.ns(), "--lease-namespace", scene.ns()});
  scene.until("it leads",
              [&] { return !client()->list(kube::kLeases, {.ns = scene.ns()}).take().empty(); });
  const auto made = client()->list(kube::kLeases, {.ns = scene.ns()}).take().at(0);
  const Json account = scene.get(kAccounts, kName);
  EXPECT_EQ(made.at("/metadata/ownerReferences/0/uid"_json_pointer), kube::uid_of(account));
  one.signal(SIGTERM);
  EXPECT_EQ(one.wait(), 0) << one.log();
  EXPECT_TRUE(scene.find(kube::kLeases, kube::name_of(made)).is_object()) << "it is given back";
  (void)client()->remove(kAccounts, {scene.ns(), kName}).take();
  scene.until("the Lease is gone",
              [&] { return scene.find(kube::kLeases, kube::name_of(made)).is_null(); });
}

}  // namespace
}  // namespace outrigger::integration
