#include "tests/integration/control_plane/control_plane.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "common/error.h"
#include "tests/integration/control_plane/ports.h"

namespace outrigger::integration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{120};
constexpr const char* kAdminToken = "token-of-the-admin";
constexpr const char* kOperatorToken = "token-of-the-operator";
// The account, role and lease of manifests/install.yaml.
constexpr const char* kOperatorUser = "system:serviceaccount:outrigger-system:outrigger";

constexpr const char* kControllers =
    "namespace-controller,garbage-collector-controller,serviceaccount-controller,"
    "resourcequota-controller,node-lifecycle-controller,taint-eviction-controller,"
    "pod-garbage-collector-controller";

std::filesystem::path programs() {
  const char* folder = std::getenv("OUTRIGGER_CLUSTER_BIN");
  return folder == nullptr || *folder == '\0' ? OUTRIGGER_CLUSTER_BIN_DEFAULT : folder;
}

std::string on(int port) { return "http://127.0.0.1:" + std::to_string(port); }

void end(std::optional<ChildProcess>& process, int signal) {
  if (!process) return;
  ::kill(process->id(), signal);
  // As long as a kubelet might wait; the API server would wait a minute for open watches.
  const auto patience = std::chrono::steady_clock::now() + seconds(8);
  while (!process->poll()) {
    if (std::chrono::steady_clock::now() > patience) ::kill(process->id(), SIGKILL);
    std::this_thread::sleep_for(milliseconds(10));
  }
  process.reset();
}

}  // namespace

std::string ControlPlane::missing() {
  for (const char* program : {"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}) {
    if (!std::filesystem::exists(programs() / program)) {
      return std::string(program) + " is not in " + programs().string() +
             "; `tools/setup cluster` builds it, OUTRIGGER_CLUSTER_BIN names another folder";
    }
  }
  return {};
}

std::filesystem::path ControlPlane::program(const std::string& name) { return programs() / name; }

ControlPlane::ControlPlane(ControlPlaneOptions options)
    : options_(std::move(options)), etcd_port_(free_port()), api_port_(free_port()) {
  write_files();
  start_etcd();
  start_api_server();
  install();
  start_controllers();
}

ControlPlane::~ControlPlane() {
  // Its state goes with it: nobody has to end in order.
  for (auto* process : {&controllers_, &api_server_, &etcd_}) end(*process, SIGKILL);
}

std::filesystem::path ControlPlane::log(const std::string& name) const {
  return folder_.path() / (name + ".log");
}

void ControlPlane::write_files() {
  const auto& folder = folder_.path();
  const std::string key = "openssl ecparam -genkey -name prime256v1 -noout -out '" +
                          (folder / "accounts.key").string() + "'";
  if (std::system(key.c_str()) != 0) throw IoError("making a key failed: " + key);
  write_file_atomically(folder / "tokens.csv",
                        std::string(kAdminToken) + ",admin,admin,\"system:masters\"\n" +
                            kOperatorToken + "," + kOperatorUser +
                            ",operator,\"system:serviceaccounts,system:authenticated\"\n");
  admin_.server = "https://127.0.0.1:" + std::to_string(api_port_);
  admin_.authorities.file = folder / "certificates/apiserver.crt";
  admin_.token.text = kAdminToken;
  write_kubeconfig("admin", kAdminToken);
  write_kubeconfig("operator", kOperatorToken);
}

void ControlPlane::write_kubeconfig(const std::string& user, const std::string& token) const {
  write_file_atomically(
      folder_.path() / (user + ".conf"),
      "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
      "contexts: [{name: test, context: {cluster: test, user: " +
          user + ", namespace: outrigger-system}}]\nclusters: [{name: test, cluster: {server: '" +
          admin_.server + "', certificate-authority: '" + admin_.authorities.file.string() +
          "'}}]\nusers: [{name: " + user + ", user: {token: " + token + "}}]\n");
}

void ControlPlane::start_etcd() {
  const int peers = free_port();
  etcd_.emplace(
      programs() / "etcd",
      std::vector<std::string>{"--data-dir", (folder_.path() / "etcd").string(),
                               "--unsafe-no-fsync", "--log-level", "error", "--listen-client-urls",
                               on(etcd_port_), "--advertise-client-urls", on(etcd_port_),
                               "--listen-peer-urls", on(peers), "--initial-advertise-peer-urls",
                               on(peers), "--initial-cluster", "default=" + on(peers)},
      log("etcd"));
}

void ControlPlane::start_api_server() {
  const auto& folder = folder_.path();
  const std::string key = (folder / "accounts.key").string();
  api_server_.emplace(programs() / "kube-apiserver",
                      std::vector<std::string>{"--etcd-servers",
                                               on(etcd_port_),
                                               "--bind-address",
                                               "127.0.0.1",
                                               "--secure-port",
                                               std::to_string(api_port_),
                                               "--cert-dir",
                                               (folder / "certificates").string(),
                                               "--endpoint-reconciler-type",
                                               "none",
                                               "--advertise-address",
                                               "127.0.0.1",
                                               "--service-cluster-ip-range",
                                               "198.19.0.0/16",
                                               "--token-auth-file",
                                               (folder / "tokens.csv").string(),
                                               "--authorization-mode",
                                               "RBAC",
                                               "--service-account-key-file",
                                               key,
                                               "--service-account-signing-key-file",
                                               key,
                                               "--service-account-issuer",
                                               "https://kubernetes.default.svc",
                                               "--allow-privileged"},
                      log("apiserver"));
  const kube::Resource namespaces{"", "v1", "namespaces", "Namespace", false};
  // Until all paths are there, those of custom resources too, the server says 503 of any it has
  // not.
  const auto has_paths = [](kube::Client& client) {
    const auto job = client.get({"outrigger.dev", "v1alpha1", "trainingjobs", "TrainingJob"},
                                {"default", "none"});
    return job || job.error().code() != 503;
  };
  wait_for("the API server", [&] {
    if (api_server_->poll())
      throw IoError("the API server ended: " + read_file(log("apiserver")).substr(0, 4000));
    if (!std::filesystem::exists(admin_.authorities.file)) return false;  // it makes its own
    try {
      kube::Client client(admin_, {.timeout = seconds(2), .retry = {.tries = 1}});
      // Its own first steps (roles, priority levels) are behind it once these exist.
      return has_paths(client) && static_cast<bool>(client.get(namespaces, {"", "kube-system"})) &&
             static_cast<bool>(client.get({"rbac.authorization.k8s.io", "v1", "clusterrolebindings",
                                           "ClusterRoleBinding", false},
                                          {"", "system:node-proxier"}));
    } catch (const IoError&) {
      return false;
    }
  });
}

void ControlPlane::start_controllers() {
  controllers_.emplace(
      programs() / "kube-controller-manager",
      std::vector<std::string>{
          "--kubeconfig", admin_kubeconfig().string(), "--leader-elect=false", "--secure-port", "0",
          "--service-account-private-key-file", (folder_.path() / "accounts.key").string(),
          "--kube-api-qps", std::to_string(options_.qps), "--kube-api-burst",
          std::to_string(2 * options_.qps), "--concurrent-namespace-syncs", "20",
          // A node is lost after eight seconds without a word, not after fifty.
          "--node-monitor-period", "1s", "--node-monitor-grace-period", "8s", "--controllers",
          options_.controllers.empty() ? kControllers : options_.controllers},
      log("controllers"));
  kube::Client client(admin_);
  const kube::Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount"};
  wait_for("the controllers", [&] {
    return static_cast<bool>(client.get(accounts, {"outrigger-system", "default"}));
  });
}

void ControlPlane::kubectl(const std::string& arguments) const {
  const std::string command = "'" + kubectl_program().string() + "' --kubeconfig '" +
                              admin_kubeconfig().string() + "' " + arguments + " >>'" +
                              log("kubectl").string() + "' 2>&1";
  if (std::system(command.c_str()) != 0)
    throw IoError(command + ": " + read_file(log("kubectl")).substr(0, 4000));
}

void ControlPlane::install() {
  const std::string root = OUTRIGGER_SOURCE_DIR;
  kubectl("apply --server-side -f '" + root + "/charts/outrigger/crds'");
  // `kubectl wait` fails on a definition that has no conditions yet.
  kube::Client client(admin_);
  wait_for("TrainingJob", [&] {
    return static_cast<bool>(
        client.list({"outrigger.dev", "v1alpha1", "trainingjobs", "TrainingJob"}));
  });
  kubectl("apply --server-side -f '" + root + "/manifests/install.yaml'");
}

void ControlPlane::stop_api_server(int signal) { end(api_server_, signal); }

void ControlPlane::freeze_etcd() { ::kill(etcd_->id(), SIGSTOP); }

void ControlPlane::thaw_etcd() { ::kill(etcd_->id(), SIGCONT); }

void ControlPlane::restart_etcd() {
  end(etcd_, SIGKILL);
  start_etcd();
}

void ControlPlane::wait_for(const std::string& what, const std::function<bool()>& holds) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw IoError(what + " did not come up within " + std::to_string(kPatience.count()) +
                    " s; logs are in " + folder_.path().string());
    std::this_thread::sleep_for(milliseconds(100));
  }
}

}  // namespace outrigger::integration
