#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "kube/client/client.h"

namespace outrigger::integration {

/// Nodes whose kubelet only says that it lives: a Lease renewed every second, as kubelets do.
/// Thread-safe.
class FakeNodes {
 public:
  /// Makes node-0 to node-<count − 1>. `client` must outlive this.
  FakeNodes(kube::Client& client, int count);
  ~FakeNodes();
  FakeNodes(const FakeNodes&) = delete;
  FakeNodes& operator=(const FakeNodes&) = delete;

  void add(const std::string& name);
  /// Its kubelet is heard no more; the object stays.
  void silence(const std::string& name);

 private:
  void renew(const std::string& name);

  kube::Client& client_;
  std::mutex mutex_;
  std::set<std::string> living_;
  std::jthread thread_;
};

}  // namespace outrigger::integration
