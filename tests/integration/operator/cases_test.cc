// The real operator on a real API server. Each case of the tables is a test of its own; those that
// are chosen are played many at a time, and their results asked for one by one.
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>

#include "tests/integration/control_plane/control_plane.h"
#include "tests/integration/operator/board.h"
#include "tests/integration/operator/cases.h"
#include "tests/integration/operator/operator_process.h"

namespace outrigger::integration {
namespace {

constexpr int kAtOnce = 12;
constexpr int kHealthyNodes = 6;

/// What all cases share.
struct Stage {
  Stage()
      : client(cluster.admin()),
        nodes(client, kHealthyNodes),
        process(cluster, "operator",
                {"--image-pull-secret", "registry-key", "--rdma-resource-per-gpu", "rdma/hca=1",
                 "--rdma-variable", "NCCL_IB_HCA=mlx5"}),
        board({client, nodes}, kAtOnce) {}
  ControlPlane cluster;
  kube::Client client;
  FakeNodes nodes;
  OperatorProcess process;
  Board board;
};

// By "Suite.Name".
std::map<std::string, Case>& all_cases() {
  static std::map<std::string, Case> cases;
  return cases;
}

/// Made when the first case is asked for, gone after the last.
class OnAnApiServer : public testing::Environment {
 public:
  static Stage& stage() {
    if (one()) return *one();
    one() = std::make_unique<Stage>();
    const auto& unit = *testing::UnitTest::GetInstance();
    for (int i = 0; i < unit.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *unit.GetTestSuite(i);
      for (int j = 0; j < suite.total_test_count(); ++j) {
        const testing::TestInfo& test = *suite.GetTestInfo(j);
        const std::string name = std::string(suite.name()) + "." + test.name();
        if (test.should_run()) one()->board.add(name, all_cases().at(name));
      }
    }
    return *one();
  }
  void TearDown() override {
    if (!one()) return;
    OperatorProcess& process = one()->process;
    EXPECT_TRUE(process.runs()) << process.log();
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), 0) << process.log();  // a leak would show here
    one().reset();
  }

 private:
  static std::unique_ptr<Stage>& one() {
    static std::unique_ptr<Stage> stage;
    return stage;
  }
};

class OperatorCase : public testing::Test {
 public:
  explicit OperatorCase(std::string name) : name_(std::move(name)) {}
  void TestBody() override {
    const std::string missing = ControlPlane::missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    const std::string problem = OnAnApiServer::stage().board.result(name_);
    EXPECT_TRUE(problem.empty()) << problem;
  }

 private:
  const std::string name_;
};

void add(const char* suite, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const std::string name = std::string(suite) + "." + one.name;
    all_cases()[name] = one;
    testing::RegisterTest(suite, one.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [name]() -> OperatorCase* { return new OperatorCase(name); });
  }
}

// The slow ones first.
const bool kAdded = [] {
  add("Autoscaling", autoscaling_cases());
  add("Nodes", node_cases());
  add("Workers", worker_cases());
  add("Deadlines", deadline_cases());
  add("Refusals", refusal_cases());
  add("Quotas", quota_cases());
  add("Restarts", restart_cases());
  add("Endings", ending_cases());
  add("Suspend", suspend_cases());
  add("Edits", edit_cases());
  add("Lifecycle", lifecycle_cases());
  add("Children", child_cases());
  add("Pods", pod_cases());
  add("Rules", rule_cases());
  add("External", external_cases());
  add("ExitCodes", exit_code_cases());
  testing::AddGlobalTestEnvironment(new OnAnApiServer);
  return true;
}();

}  // namespace
}  // namespace outrigger::integration
