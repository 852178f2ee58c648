#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/child_process.h"
#include "kube/client/client.h"
#include "tests/integration/control_plane/control_plane.h"
#include "tests/integration/operator/operator_process.h"

namespace outrigger::bench {

/// A control plane with the Job controller at 1,000 requests a second, and nodes that kwok plays:
/// a pod that names one of them runs at once, at an address of the loopback. Not thread-safe.
class Stage {
 public:
  static constexpr int kNodes = 50;

  /// Why it cannot be set up here; empty: it can.
  static std::string missing();

  Stage();

  /// Pods run from now on.
  void start_kubelets();
  /// The operator anew, for one namespace and without leader election; returns at once. The former
  /// one has to be stopped.
  void start_operator(const std::string& ns, const std::filesystem::path& program =
                                                 integration::OperatorProcess::built_program());
  void stop_operator();
  pid_t operator_id() const { return operator_->id(); }
  /// What API server and etcd took so far.
  std::chrono::duration<double> cluster_cpu() const;
  /// Returns once API server and etcd have next to nothing to do, or after a minute: kwok and the
  /// Job controller go on for a while with what they were given.
  void settle() const;
  /// The operator's page of metrics; empty while it does not answer.
  std::string metrics() const;

  void make_namespace(const std::string& ns);
  kube::Client& client() { return *client_; }
  const integration::ControlPlane& cluster() const { return cluster_; }
  /// A node's name, one after the other.
  static std::string node(int number);

 private:
  void make_nodes();

  integration::ControlPlane cluster_;
  std::unique_ptr<kube::Client> client_;
  std::optional<ChildProcess> kwok_;
  std::unique_ptr<integration::OperatorProcess> operator_;
  int operators_ = 0;
  int operator_port_ = 0;
};

}  // namespace outrigger::bench
