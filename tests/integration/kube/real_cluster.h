#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kube/client/client.h"
#include "kube/client/retry.h"
#include "kube/object/object.h"
#include "tests/integration/control_plane/control_plane.h"

namespace outrigger::kube {

inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline const Resource kDeployments{"apps", "v1", "deployments", "Deployment"};

/// A namespace of its own for each test, on an API server for all of them.
class RealCluster : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = integration::ControlPlane::missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    config_ = cluster().admin();
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

  // Gone with the process.
  static integration::ControlPlane& cluster() {
    static integration::ControlPlane one;
    return one;
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
