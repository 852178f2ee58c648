#include "tests/integration/operator/fake_nodes.h"

#include "common/log.h"
#include "kube/control/lease.h"
#include "kube/timer.h"
#include "tests/integration/operator/scene.h"

namespace outrigger::integration {
namespace {

kube::ObjectKey lease_of(const std::string& node) { return {"kube-node-lease", node}; }

}  // namespace

FakeNodes::FakeNodes(kube::Client& client, int count) : client_(client) {
  for (int i = 0; i < count; ++i) add("node-" + std::to_string(i));
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (kube::Timer::system().sleep(std::chrono::seconds(1), stop)) {
      std::set<std::string> nodes;
      {
        const std::scoped_lock lock(mutex_);
        nodes = living_;
      }
      for (const std::string& node : nodes) {
        try {
          renew(node);
        } catch (const std::exception& error) {
          log::warning("the lease of {}: {}", node, error.what());
        }
      }
    }
  });
}

FakeNodes::~FakeNodes() = default;

void FakeNodes::add(const std::string& name) {
  (void)client_
      .create(kNodes, {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}})
      .take();
  const Json ready{{"type", "Ready"},
                   {"status", "True"},
                   {"reason", "KubeletReady"},
                   {"lastHeartbeatTime", now_text()},
                   {"lastTransitionTime", now_text()}};
  (void)client_
      .patch(kNodes, {"", name}, kube::PatchType::kMerge,
             {{"status", {{"conditions", Json::array({ready})}}}}, {}, "status")
      .take();
  Json lease;
  kube::write_lease(lease, lease_of(name),
                    {name, std::chrono::seconds(40), kube::format_micro_time(kube::wall_time()),
                     kube::format_micro_time(kube::wall_time()), 0});
  (void)client_.create(kube::kLeases, lease).take();
  const std::scoped_lock lock(mutex_);
  living_.insert(name);
}

void FakeNodes::silence(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  living_.erase(name);
}

void FakeNodes::renew(const std::string& name) {
  const Json renewal{{"spec", {{"renewTime", kube::format_micro_time(kube::wall_time())}}}};
  const auto result =
      client_.patch(kube::kLeases, lease_of(name), kube::PatchType::kMerge, renewal);
  if (!result) log::warning("{}", result.error().what());
}

}  // namespace outrigger::integration
