// An operator that is killed at any moment loses nothing and does nothing twice.
#include <csignal>
#include <random>
#include <thread>

#include "tests/integration/operator/outage.h"

namespace outrigger::integration {
namespace {

using std::chrono::milliseconds;

/// The operator dies at moments drawn from a seed while a job lives through everything.
class KilledOperator : public Outage, public testing::WithParamInterface<unsigned> {
 protected:
  // Starts the operator and kills it (SIGKILL) after a moment, several times; then it stays.
  void kill_again_and_again(std::mt19937& random, int times) {
    for (int i = 0; i < times; ++i) {
      OperatorProcess& victim = start_operator();
      std::this_thread::sleep_for(milliseconds(random() % 1500));
      victim.signal(SIGKILL);
      EXPECT_EQ(victim.wait(), 128 + SIGKILL);
      expect_no_duplicates();
    }
    start_operator();
  }
};

TEST_P(KilledOperator, LosesNothingAndCountsOnce) {
  std::mt19937 random(GetParam());
  Scene& scene = *scene_;
  scene.create(scene.sample({{"server", {{"replicas", 2}}}}));
  kill_again_and_again(random, 3);
  scene.until("all pods exist", [&] { return scene.names().size() == 4; });
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  EXPECT_EQ(scene.at("/executionAttempts"), 1);
  operators_.back()->signal(SIGKILL);
  scene.end("faces-server-0-0", {22});
  scene.end("faces-server-1-0", {23});
  kill_again_and_again(random, 4);
  scene.until("servers of the second attempt", [&] {
    scene.finish_deletions();
    int servers = 0;
    for (const Json& pod : scene.pods("server"))
      servers += kube::label(pod, std::string(api::kAttemptLabel)) == "2" ? 1 : 0;
    return servers == 2;
  });
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  expect_no_duplicates();
  EXPECT_EQ(scene.at("/restarts"), 1);
  EXPECT_EQ(scene.at("/executionAttempts"), 2);
  EXPECT_EQ(scene.at("/lastFailure/reason"), "IoFailure");
}

INSTANTIATE_TEST_SUITE_P(Seeds, KilledOperator, testing::Range(1U, 7U));

TEST_F(Outage, TheOperatorIsKilledWhileItSuspendsAndResumes) {
  std::mt19937 random(7);
  Scene& scene = *scene_;
  start_operator();
  scene.start_and_run();
  for (int i = 0; i < 2; ++i) {
    for (const bool suspended : {true, false}) {
      scene.change_spec({{"suspend", suspended}});
      std::this_thread::sleep_for(milliseconds(random() % 500));
      operators_.back()->signal(SIGKILL);
      start_operator();
      scene.until(suspended ? "it is suspended" : "it runs", [&] {
        scene.finish_deletions();
        if (!suspended) scene.run_all();
        return suspended ? scene.condition("Suspended") == "True/Suspended"
                         : scene.condition("Running") == "True/ServersReady";
      });
    }
  }
  EXPECT_EQ(scene.at("/executionAttempts"), 3);
  EXPECT_EQ(scene.status().value("restarts", 0), 0);
}

}  // namespace
}  // namespace outrigger::integration
