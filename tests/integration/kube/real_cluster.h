#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "kube/client/client.h"
#include "kube/client/retry.h"
#include "kube/object/object.h"

namespace outrigger::kube {

inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline const Resource kDeployments{"apps", "v1", "deployments", "Deployment"};

/// A namespace of its own on the API server that OUTRIGGER_KUBECONFIG names, for each test.
class RealCluster : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("OUTRIGGER_KUBECONFIG");
    if (path == nullptr || *path == '\0')
      GTEST_SKIP() << "OUTRIGGER_KUBECONFIG does not name a kubeconfig of a cluster to test on";
    config_ = read_kubeconfig(path);
    client_ = std::make_unique<Client>(config_);
    ns_ = "outrigger-" + std::to_string(static_cast<int64_t>(random_chance() * 1e9));
    (void)client_
        ->create(kNamespaces,
                 {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns_}}}})
        .take();
  }
  void TearDown() override {
    if (client_) (void)client_->remove(kNamespaces, {{}, ns_});
  }

  Json config_map(const std::string& name, const std::string& value = "1") const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"namespace", ns_}, {"labels", {{"app", "test"}}}}},
            {"data", {{"a", value}}}};
  }
  Json make(const std::string& name, const std::string& value = "1") {
    return client_->create(kConfigMaps, config_map(name, value)).take();
  }
  ObjectKey key(const std::string& name) const { return {ns_, name}; }

  Config config_;
  std::unique_ptr<Client> client_;
  std::string ns_;
};

}  // namespace outrigger::kube
