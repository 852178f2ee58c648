#include "bench/operator/kubeflow.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "api/names.h"
#include "common/error.h"
#include "http/client.h"
#include "tests/integration/control_plane/ports.h"

namespace outrigger::bench {
namespace {

using integration::ControlPlane;

// Compiled into it, and where it looks for its webhook's certificate.
constexpr const char* kKubeflow = "kubeflow";
constexpr const char* kCertificates = "k8s-webhook-server/serving-certs";

// As the Job controller beside it.
constexpr std::array<std::pair<const char*, const char*>, 3> kLimits{
    {{"--kube-api-qps", "1000"}, {"--kube-api-burst", "2000"}, {"--controller-threads", "16"}}};

const kube::Resource kPyTorchJobs{"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"};
const kube::Resource kSecretsApi{"", "v1", "secrets", "Secret"};

std::filesystem::path program() { return ControlPlane::program("training-operator.v1"); }

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw IoError("failed: " + command);
}

Json replicas(const Json& pod_template, int count) {
  return {{"replicas", count}, {"restartPolicy", "OnFailure"}, {"template", pod_template}};
}

bool is_running(const Json& job) {
  const Json conditions = job.value("/status/conditions"_json_pointer, Json::array());
  return std::ranges::any_of(conditions, [](const Json& one) {
    return one.at("type") == "Running" && one.at("status") == "True";
  });
}

}  // namespace

std::string TrainingOperator::missing() {
  if (std::filesystem::exists(program())) return {};
  return "`tools/setup training-operator` builds it";
}

std::string TrainingOperator::limits() {
  std::string limits;
  for (const auto& [flag, value] : kLimits)
    limits += (limits.empty() ? "" : " ") + std::string(flag) + "=" + value;
  return limits;
}

TrainingOperator::TrainingOperator(Stage& stage)
    : stage_(stage), certificates_(std::filesystem::temp_directory_path() / kCertificates) {
  const auto kind = program().parent_path().parent_path() / "kubeflow.org_pytorchjobs.yaml";
  const std::string kubectl = "'" + ControlPlane::kubectl_program().string() + "' --kubeconfig '" +
                              stage.cluster().admin_kubeconfig().string() + "' ";
  run(kubectl + "apply --server-side -f '" + kind.string() + "' >/dev/null");
  wait_until("PyTorchJobs are served", std::chrono::milliseconds(100),
             [&] { return bool(stage.client().list(kPyTorchJobs, {})); });
  stage.make_namespace(kKubeflow);
  (void)stage.client()
      .create(
          kSecretsApi,
          {{"apiVersion", "v1"},
           {"kind", "Secret"},
           {"metadata", {{"name", "training-operator-webhook-cert"}, {"namespace", kKubeflow}}}})
      .take();
  make_certificate();
}

TrainingOperator::~TrainingOperator() {
  process_.reset();
  std::error_code gone;
  std::filesystem::remove_all(certificates_, gone);
}

// A kubelet would mount what it writes into its Secret; it begins only once a file is there.
void TrainingOperator::make_certificate() const {
  std::filesystem::create_directories(certificates_);
  run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
      "-subj /CN=training-operator -keyout '" +
      (certificates_ / "tls.key").string() + "' -out '" + (certificates_ / "tls.crt").string() +
      "' 2>/dev/null");
}

void TrainingOperator::start(const std::string& ns) {
  const std::string probes = "127.0.0.1:" + std::to_string(integration::free_port());
  std::vector<std::string> flags{"--kubeconfig",
                                 stage_.cluster().admin_kubeconfig().string(),
                                 "--namespace",
                                 ns,
                                 "--enable-scheme",
                                 "pytorchjob",
                                 "--metrics-bind-address",
                                 "0",
                                 "--health-probe-bind-address",
                                 probes,
                                 "--webhook-server-port",
                                 std::to_string(integration::free_port()),
                                 "--zap-log-level",
                                 "error"};
  for (const auto& [flag, value] : kLimits) flags.insert(flags.end(), {flag, value});
  process_.emplace(program(), flags, stage_.cluster().folder() / "training-operator.log");
  http::Client client({.base_url = "http://" + probes});
  wait_until("Kubeflow's training operator is ready", std::chrono::milliseconds(100), [&] {
    if (process_->poll()) throw IoError("Kubeflow's training operator ended");
    try {
      return client.get("/readyz").status == 200;
    } catch (const IoError&) {
      return false;
    }
  });
}

Posting pytorch_job(const std::string& ns, int number) {
  const Posting job = builtin_job(ns, number);
  Json pod = job.object.at("/spec/template"_json_pointer);
  pod["spec"]["containers"][0]["name"] = "pytorch";
  pod["spec"].erase("restartPolicy");
  return {kPyTorchJobs,
          {{"apiVersion", kPyTorchJobs.api_version()},
           {"kind", kPyTorchJobs.kind},
           {"metadata", job.object.at("metadata")},
           {"spec",
            {{"pytorchReplicaSpecs",
              {{"Master", replicas(pod, 1)}, {"Worker", replicas(pod, kPodsOfAJob - 1)}}}}}}};
}

int running_pytorch_jobs(kube::Client& client, const std::string& ns) {
  const auto jobs = client.list(kPyTorchJobs, {.ns = ns}).take();
  return static_cast<int>(std::ranges::count_if(jobs, is_running));
}

}  // namespace outrigger::bench
