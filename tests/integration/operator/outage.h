#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "api/names.h"
#include "http/client.h"
#include "kube/control/lease.h"
#include "tests/integration/control_plane/control_plane.h"
#include "tests/integration/operator/operator_process.h"
#include "tests/integration/operator/scene.h"

namespace outrigger::integration {

/// A control plane for all tests of a suite, a scene and operators for each.
class Outage : public testing::Test {
 protected:
  static void TearDownTestSuite() {
    client().reset();
    cluster().reset();
  }
  void SetUp() override {
    const std::string missing = ControlPlane::missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    if (!cluster()) {
      cluster() = std::make_unique<ControlPlane>();
      client() = std::make_unique<kube::Client>(cluster()->admin());
    }
    // What a killed leader of the test before left would have to be waited out.
    (void)client()->remove(kube::kLeases, {"outrigger-system", "outrigger"});
    static int number = 0;
    scene_ = std::make_unique<Scene>(*client(), "outage-" + std::to_string(number++));
  }
  // The job goes, so that the next test's operator has nothing to do with it.
  void TearDown() override {
    operators_.clear();
    if (!scene_) return;
    cluster()->thaw_etcd();  // where a test ended in the midst of an outage
    for (const Json& job : client()->list(kJobs, {.ns = scene_->ns()}).take())
      (void)client()->remove(kJobs, kube::key_of(job));
  }

  static std::unique_ptr<ControlPlane>& cluster() {
    static std::unique_ptr<ControlPlane> one;
    return one;
  }
  static std::unique_ptr<kube::Client>& client() {
    static std::unique_ptr<kube::Client> one;
    return one;
  }

  OperatorProcess& start_operator(std::vector<std::string> flags = {"--leader-elect", "false"}) {
    static int number = 0;
    operators_.push_back(std::make_unique<OperatorProcess>(
        *cluster(), "operator-" + std::to_string(number++), std::move(flags)));
    return *operators_.back();
  }
  /// One that has seen who leads; waits for a leader.
  OperatorProcess& start_standby() {
    std::string leader;
    scene_->until("one leads", [&] { return !(leader = holder()).empty(); });
    OperatorProcess& standby = start_operator({});
    scene_->until("the standby has seen who leads",
                  [&] { return standby.log().find(leader + " leads") != std::string::npos; });
    return standby;
  }
  std::string holder() {
    const auto lease = client()->get(kube::kLeases, {"outrigger-system", "outrigger"});
    return lease ? kube::read_lease(*lease).holder : "";
  }
  /// An operator's requests so far whose line among its metrics is one of those asked for.
  static int requests(const OperatorProcess& process,
                      const std::function<bool(const std::string&)>& is_one) {
    http::Client pages({.base_url = "http://127.0.0.1:" + std::to_string(process.status_port())});
    std::istringstream page(pages.get("/metrics").body);
    int sum = 0;
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with("rest_client_requests_total{") && is_one(line))
        sum += std::stoi(line.substr(line.rfind(' ')));
    }
    return sum;
  }
  // At most one pod that is not over and not to end for each role and index.
  void expect_no_duplicates() {
    std::set<std::string> seen;
    for (const Json& pod : scene_->pods()) {
      const std::string phase = pod.value("/status/phase"_json_pointer, "");
      if (kube::is_deleting(pod) || phase == "Failed" || phase == "Succeeded") continue;
      const std::string place = kube::label(pod, std::string(api::kRoleLabel)).value_or("") +
                                kube::label(pod, std::string(api::kIndexLabel)).value_or("");
      EXPECT_TRUE(seen.insert(place).second) << kube::name_of(pod) << " is one too many";
    }
  }

  std::unique_ptr<Scene> scene_;
  std::vector<std::unique_ptr<OperatorProcess>> operators_;
};

}  // namespace outrigger::integration
