#include "bench/operator/stage.h"

#include <csignal>
#include <thread>

#include "bench/operator/process.h"
#include "common/error.h"
#include "http/client.h"
#include "tests/integration/control_plane/ports.h"

namespace outrigger::bench {
namespace {

using integration::ControlPlane;
using kube::Json;

const kube::Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
const kube::Resource kNodesApi{"", "v1", "nodes", "Node", false};
const kube::Resource kAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};

constexpr const char* kControllers =
    "namespace-controller,serviceaccount-controller,garbage-collector-controller,job-controller";
constexpr int kQps = 1000;

kube::ClientOptions client_options() {
  kube::ClientOptions options;
  options.user_agent = "operator-bench";
  return options;
}

}  // namespace

std::string Stage::missing() {
  std::string missing = ControlPlane::missing();
  if (missing.empty() && !std::filesystem::exists(ControlPlane::program("kwok")))
    missing = "kwok is not there; `tools/setup kwok` builds it";
  return missing;
}

Stage::Stage() : cluster_({.controllers = kControllers, .qps = kQps}) {
  client_ = std::make_unique<kube::Client>(cluster_.admin(), client_options());
  make_nodes();
}

std::string Stage::node(int number) { return "fake-" + std::to_string(number % kNodes); }

void Stage::make_nodes() {
  for (int i = 0; i < kNodes; ++i) {
    (void)client_
        ->create(kNodesApi, {{"apiVersion", "v1"},
                             {"kind", "Node"},
                             {"metadata", {{"name", node(i)}, {"labels", {{"type", "kwok"}}}}}})
        .take();
  }
}

void Stage::start_kubelets() {
  kwok_.emplace(ControlPlane::program("kwok"),
                std::vector<std::string>{
                    "--kubeconfig", cluster_.admin_kubeconfig().string(), "--manage-all-nodes=true",
                    "--cidr=127.16.0.1/16", "--node-ip=127.0.0.1",
                    "--server-address=127.0.0.1:" + std::to_string(integration::free_port())},
                cluster_.folder() / "kwok.log");
}

void Stage::start_operator(const std::string& ns, const std::filesystem::path& program) {
  operator_port_ = integration::free_port();
  operator_ = std::make_unique<integration::OperatorProcess>(
      cluster_, "operator-" + std::to_string(operators_++),
      std::vector<std::string>{"--leader-elect", "false", "--namespace", ns, "--status-port",
                               std::to_string(operator_port_), "--log-level", "warning"},
      program);
}

void Stage::stop_operator() {
  operator_->signal(SIGTERM);
  const int status = operator_->wait();
  if (status != 0)
    throw IoError("the operator ended with " + std::to_string(status) + ": " + operator_->log());
  operator_.reset();
}

std::chrono::duration<double> Stage::cluster_cpu() const {
  std::chrono::duration<double> sum{};
  for (const pid_t process : cluster_.servers()) sum += cpu_time(process);
  return sum;
}

void Stage::settle() const {
  constexpr std::chrono::seconds kLook{1};
  constexpr std::chrono::milliseconds kLittle{100};
  for (int quiet = 0, looks = 0; quiet < 2 && looks < 60; ++looks) {
    const auto before = cluster_cpu();
    std::this_thread::sleep_for(kLook);
    quiet = cluster_cpu() - before < kLittle ? quiet + 1 : 0;
  }
}

std::string Stage::metrics() const {
  try {
    http::Client pages({.base_url = "http://127.0.0.1:" + std::to_string(operator_port_)});
    const auto page = pages.get("/metrics");
    return page.status == 200 ? page.body : "";
  } catch (const Error&) {
    return "";
  }
}

void Stage::make_namespace(const std::string& ns) {
  (void)client_
      ->create(kNamespaces,
               {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}})
      .take();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!client_->get(kAccounts, {ns, "default"})) {
    if (std::chrono::steady_clock::now() > deadline)
      throw IoError("the namespace " + ns + " got no service account");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace outrigger::bench
