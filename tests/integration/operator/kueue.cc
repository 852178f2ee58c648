#include "tests/integration/operator/kueue.h"

#include <cstdlib>
#include <thread>

#include "common/error.h"
#include "common/file.h"
#include "kube/client/base64.h"
#include "tests/integration/control_plane/ports.h"

namespace outrigger::integration {
namespace {

constexpr const char* kNamespace = "kueue-system";

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw IoError("failed: " + command);
}

Json queue_spec(const std::string& name, int cpus) {
  const Json quota{{"name", "cpu"}, {"nominalQuota", std::to_string(cpus)}};
  const Json flavor{{"name", name}, {"resources", Json::array({quota})}};
  return {{"namespaceSelector", Json::object()},
          {"preemption", {{"withinClusterQueue", "LowerPriority"}}},
          {"resourceGroups", Json::array({{{"coveredResources", Json::array({"cpu"})},
                                           {"flavors", Json::array({flavor})}}})}};
}

Json object(const kube::Resource& resource, const Json& metadata, const Json& spec) {
  return {{"apiVersion", resource.api_version()},
          {"kind", resource.kind},
          {"metadata", metadata},
          {"spec", spec}};
}

Json template_of(const char* container) {
  const Json one{{"name", container}, {"resources", {{"requests", {{"cpu", "1"}}}}}};
  return {{"spec", {{"containers", Json::array({one})}}}};
}

// Nothing where it is there.
void make_flavor(kube::Client& client, const std::string& name, const Json& more) {
  const kube::Resource flavors{"kueue.x-k8s.io", "v1beta1", "resourceflavors", "ResourceFlavor",
                               false};
  const Json toleration{{"key", "pool"}, {"operator", "Exists"}};
  Json spec{{"nodeLabels", {{"pool", name}}}, {"tolerations", Json::array({toleration})}};
  spec.update(more);
  const auto made = client.create(flavors, object(flavors, {{"name", name}}, spec));
  if (!made && !made.error().already_exists()) throw kube::ApiError(made.error());
}

}  // namespace

const kube::Resource kWorkloads{"kueue.x-k8s.io", "v1beta1", "workloads", "Workload"};
const kube::Resource kClusterQueues{"kueue.x-k8s.io", "v1beta1", "clusterqueues", "ClusterQueue",
                                    false};
const kube::Resource kLocalQueues{"kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue"};

std::string Kueue::missing() {
  const auto program = ControlPlane::program("kueue");
  if (std::filesystem::exists(program)) return {};
  return "kueue is not in " + program.parent_path().string() + "; `tools/setup kueue` builds it";
}

Kueue::Kueue(const ControlPlane& cluster)
    : folder_(cluster.folder() / "kueue"), webhook_port_(free_port()), health_port_(free_port()) {
  install(cluster);
  write_files();
  process_.emplace(ControlPlane::program("kueue"),
                   std::vector<std::string>{"--kubeconfig", cluster.admin_kubeconfig().string(),
                                            "--config", (folder_ / "config.yaml").string()},
                   folder_ / "log");
  kube::Client client(cluster.admin());
  guard(client);
  const Json probe = object(
      kWorkloads, {{"name", "probe"}, {"namespace", "default"}},
      {{"podSets",
        Json::array({{{"name", "main"}, {"count", 1}, {"template", template_of("main")}}})}});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!client.create(kWorkloads, probe, {.strict = false, .dry_run = true})) {
    if (process_->poll() || std::chrono::steady_clock::now() > deadline)
      throw IoError("Kueue does not come up: " + log());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

std::string Kueue::log() const { return read_file(folder_ / "log"); }

void Kueue::install(const ControlPlane& cluster) const {
  const std::string kubectl = "'" + ControlPlane::kubectl_program().string() + "' --kubeconfig '" +
                              cluster.admin_kubeconfig().string() + "' ";
  const auto kinds = ControlPlane::program("kueue").parent_path().parent_path() / "kueue-crds";
  run(kubectl + "apply --server-side -f '" + kinds.string() + "' >/dev/null");
  run(kubectl + "wait --for condition=Established -f '" + kinds.string() + "' >/dev/null");
  run(kubectl + "create namespace " + kNamespace + " >/dev/null");
  // Kueue fills it; a kubelet would mount it. Our own certificate is for an address and no name.
  run(kubectl + "create secret generic kueue-webhook-server-cert -n " + kNamespace + " >/dev/null");
}

void Kueue::write_files() const {
  const auto certificates = folder_ / "certificates";
  std::filesystem::create_directories(certificates);
  run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
      "-subj /CN=kueue -addext subjectAltName=IP:127.0.0.1 -keyout '" +
      (certificates / "tls.key").string() + "' -out '" + (certificates / "tls.crt").string() +
      "' 2>/dev/null");
  write_file_atomically(
      folder_ / "config.yaml",
      "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nnamespace: " +
          std::string(kNamespace) +
          "\nhealth: {healthProbeBindAddress: '127.0.0.1:" + std::to_string(health_port_) +
          "'}\nmetrics: {bindAddress: '0'}\nwebhook: {port: " + std::to_string(webhook_port_) +
          ", certDir: '" + certificates.string() +
          "'}\nleaderElection: {leaderElect: false}\n"
          "internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, "
          "webhookSecretName: kueue-webhook-server-cert}\n"
          "integrations: {frameworks: [batch/job, pod], externalFrameworks: "
          "[TrainingJob.v1alpha1.outrigger.dev]}\n"
          "managedJobsNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, "
          "operator: NotIn, values: [kube-system, kueue-system]}]}\n"
          "featureGates: {VisibilityOnDemand: false}\n");
}

// The API server asks Kueue at its own address: there is no Service to reach here.
Json Kueue::hook(const std::string& path, const Json& rule) const {
  const std::string bundle = kube::encode_base64(read_file(folder_ / "certificates/tls.crt"));
  const std::string url = "https://127.0.0.1:" + std::to_string(webhook_port_) + "/" + path;
  return {{"name", path + ".kueue.example"},
          {"clientConfig", {{"url", url}, {"caBundle", bundle}}},
          {"rules", Json::array({rule})},
          {"sideEffects", "None"},
          {"admissionReviewVersions", Json::array({"v1"})}};
}

void Kueue::guard(kube::Client& client) const {
  const auto add = [&](const char* plural, const char* kind, const Json& hooks) {
    const kube::Resource resource{"admissionregistration.k8s.io", "v1", plural, kind, false};
    (void)client
        .create(resource, {{"apiVersion", resource.api_version()},
                           {"kind", kind},
                           {"metadata", {{"name", "kueue"}}},
                           {"webhooks", hooks}})
        .take();
  };
  const Json workloads{{"apiGroups", Json::array({"kueue.x-k8s.io"})},
                       {"apiVersions", Json::array({"v1beta1"})},
                       {"operations", Json::array({"CREATE"})},
                       {"resources", Json::array({"workloads"})}};
  const Json pods{{"apiGroups", Json::array({""})},
                  {"apiVersions", Json::array({"v1"})},
                  {"operations", Json::array({"CREATE"})},
                  {"resources", Json::array({"pods"})}};
  add("mutatingwebhookconfigurations", "MutatingWebhookConfiguration",
      Json::array({hook("mutate-kueue-x-k8s-io-v1beta1-workload", workloads),
                   hook("mutate--v1-pod", pods)}));
  Json changes = workloads;
  changes["operations"] = Json::array({"CREATE", "UPDATE"});
  changes["resources"] = Json::array({"workloads", "workloads/status"});
  add("validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
      Json::array({hook("validate-kueue-x-k8s-io-v1beta1-workload", changes)}));
}

void make_racks(kube::Client& client, const std::string& name,
                const std::vector<std::string>& nodes) {
  const kube::Resource topologies{"kueue.x-k8s.io", "v1beta1", "topologies", "Topology", false};
  const Json capacity{{"cpu", "8"}, {"memory", "8Gi"}, {"pods", "100"}};
  for (const std::string& node : nodes) {
    (void)client
        .patch(kNodes, {"", node}, kube::PatchType::kMerge,
               {{"metadata", {{"labels", {{"pool", name}, {kRack, "rack-of-" + node}}}}}})
        .take();
    (void)client
        .patch(kNodes, {"", node}, kube::PatchType::kMerge,
               {{"status", {{"allocatable", capacity}, {"capacity", capacity}}}}, {}, "status")
        .take();
  }
  (void)client
      .create(topologies, object(topologies, {{"name", name}},
                                 {{"levels", Json::array({{{"nodeLabel", kRack}}})}}))
      .take();
  make_flavor(client, name, {{"topologyName", name}});
}

void make_cluster_queue(kube::Client& client, const std::string& name, int cpus) {
  make_flavor(client, name, Json::object());
  (void)client
      .create(kClusterQueues, object(kClusterQueues, {{"name", name}}, queue_spec(name, cpus)))
      .take();
}

void make_check(kube::Client& client, const std::string& name) {
  const kube::Resource checks{"kueue.x-k8s.io", "v1beta1", "admissionchecks", "AdmissionCheck",
                              false};
  (void)client
      .create(checks,
              object(checks, {{"name", name}}, {{"controllerName", "checks.example/" + name}}))
      .take();
  const Json active = Json::array({{{"type", "Active"},
                                    {"status", "True"},
                                    {"reason", "Active"},
                                    {"message", "it answers"},
                                    {"lastTransitionTime", "2026-01-01T00:00:00Z"}}});
  (void)client
      .patch(checks, {"", name}, kube::PatchType::kMerge, {{"status", {{"conditions", active}}}},
             {}, "status")
      .take();
  (void)client
      .patch(kClusterQueues, {"", name}, kube::PatchType::kMerge,
             {{"spec", {{"admissionChecks", Json::array({name})}}}})
      .take();
}

void check(Scene& scene, const std::string& name, const std::string& state,
           const std::string& message) {
  const Json found = Json::array({{{"name", name},
                                   {"state", state},
                                   {"message", message},
                                   {"lastTransitionTime", "2026-01-01T00:00:00Z"}}});
  (void)scene.client()
      .patch(kWorkloads, {scene.ns(), "trainingjob-" + scene.name()}, kube::PatchType::kMerge,
             {{"status", {{"admissionChecks", found}}}}, {}, "status")
      .take();
}

void set_quota(kube::Client& client, const std::string& name, int cpus) {
  (void)client
      .patch(kClusterQueues, {"", name}, kube::PatchType::kMerge,
             {{"spec", queue_spec(name, cpus)}})
      .take();
}

void make_queue(kube::Client& client, const std::string& ns, const std::string& cluster_queue,
                const std::string& name) {
  (void)client
      .create(kLocalQueues, object(kLocalQueues, {{"name", name}, {"namespace", ns}},
                                   {{"clusterQueue", cluster_queue}}))
      .take();
}

Json of_one_cpu_each(int workers, const Json& more) {
  Json spec{{"schedulingPolicy", {{"queue", "team-a"}}},
            {"server", {{"template", template_of("server")}}},
            {"workers", {{"replicas", workers}, {"template", template_of("worker")}}}};
  spec.merge_patch(more);
  return spec;
}

std::string workload_condition(Scene& scene, const std::string& type) {
  const Json workload = scene.find(kWorkloads, "trainingjob-" + scene.name());
  if (workload.is_null()) return {};
  for (const Json& one : workload.value("/status/conditions"_json_pointer, Json::array())) {
    if (one.at("type") == type)
      return one.at("status").get<std::string>() + "/" + one.at("reason").get<std::string>();
  }
  return {};
}

}  // namespace outrigger::integration
