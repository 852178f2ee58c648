#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/child_process.h"
#include "common/file.h"
#include "kube/client/client.h"
#include "kube/client/config.h"

namespace outrigger::integration {

struct ControlPlaneOptions {
  /// Those of the controller manager that run; "" for those that tests look at.
  std::string controllers = {};
  /// Requests a second that the controller manager may send.
  int qps = 500;
};

/// A real Kubernetes control plane without a node, on loopback and free ports: etcd, API server,
/// and the controllers that tests look at (namespaces, garbage, quotas, service accounts, nodes).
/// Knows TrainingJobs, and the operator's account with the rights that our manifest gives it.
/// Everything ends and vanishes with it. Not thread-safe; the clients of it are.
class ControlPlane {
 public:
  /// Why it cannot be started here; empty: it can.
  static std::string missing();
  /// One of the programs of a cluster, whether it is there or not.
  static std::filesystem::path program(const std::string& name);
  static std::filesystem::path kubectl_program() { return program("kubectl"); }

  /// Returns once all answers. Throws IoError.
  explicit ControlPlane(ControlPlaneOptions options = {});
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// As who may do everything.
  const kube::Config& admin() const { return admin_; }
  std::filesystem::path admin_kubeconfig() const { return folder_.path() / "admin.conf"; }
  /// As the service account of our manifest.
  std::filesystem::path operator_kubeconfig() const { return folder_.path() / "operator.conf"; }
  /// A folder for files that live as long.
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// The API server's process and etcd's, while they run.
  std::vector<pid_t> servers() const { return {api_server_->id(), etcd_->id()}; }

  /// SIGTERM, as in an upgrade (SIGKILL eight seconds later), or SIGKILL; returns once it is gone.
  void stop_api_server(int signal);
  /// Returns once it answers.
  void start_api_server();
  /// etcd answers nobody (SIGSTOP), and answers again.
  void freeze_etcd();
  void thaw_etcd();
  /// etcd dies (SIGKILL) and comes back with what it had.
  void restart_etcd();

 private:
  void start_etcd();
  void start_controllers();
  void write_files();
  void write_kubeconfig(const std::string& user, const std::string& token) const;
  void install();
  void kubectl(const std::string& arguments) const;
  void wait_for(const std::string& what, const std::function<bool()>& holds) const;
  std::filesystem::path log(const std::string& name) const;

  const ControlPlaneOptions options_;
  TemporaryDirectory folder_{"outrigger-control-plane"};
  int etcd_port_;
  int api_port_;
  kube::Config admin_;
  std::optional<ChildProcess> etcd_;
  std::optional<ChildProcess> api_server_;
  std::optional<ChildProcess> controllers_;
};

}  // namespace outrigger::integration
