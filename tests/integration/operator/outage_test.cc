// What a leader's end, the API server's and etcd's do to a job in the middle of it.
#include <csignal>
#include <thread>
#include <vector>

#include "tests/integration/operator/outage.h"

namespace outrigger::integration {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

// What docs/operations.md promises, and what a look at the lease takes. A machine that is busy for
// a moment says nothing of the operator: two tries of at most five have to keep to it.
constexpr milliseconds kSigtermBound{3200};
constexpr milliseconds kSigkillBound{20'100};
constexpr int kMostTries = 5;
constexpr int kWanted = 2;

// Writes without an answer, or with one that blames the server.
bool failed_write(const std::string& line) {
  return line.find("method=\"GET\"") == line.npos &&
         (line.find("code=\"<error>\"") != line.npos || line.find("code=\"5") != line.npos);
}

TEST_F(Outage, WhatHappenedWhileNobodyLookedIsFoundOut) {
  Scene& scene = *scene_;
  start_operator();
  scene.start_and_run({{"workers", {{"replicas", 3}}}});
  operators_.back()->signal(SIGTERM);
  EXPECT_EQ(operators_.back()->wait(), 0);
  scene.end("faces-server-0-0", {0});
  scene.vanish("faces-worker-0-0");
  scene.end("faces-worker-1-0", {77});
  start_operator();
  scene.until_condition("Complete", "True/Trained");
}

TEST_F(Outage, ThePodsRunOnWithoutAnOperator) {
  Scene& scene = *scene_;
  start_operator();
  scene.start_and_run();
  const std::string before = kube::uid_of(scene.pod("faces-server-0-0"));
  operators_.back()->signal(SIGKILL);
  operators_.back()->wait();
  start_operator({"--leader-elect", "false", "--server-image", "registry.example/newer:2"});
  scene.stays(
      "the same pods",
      [&] {
        return kube::uid_of(scene.pod("faces-server-0-0")) == before && scene.names().size() == 3;
      },
      seconds(3));
  EXPECT_EQ(scene.condition("Running"), "True/ServersReady");
}

TEST_F(Outage, AStandbyLeadsWithinThreeSecondsOfASigterm) {
  OperatorProcess* leader = &start_operator({});
  int kept = 0;
  for (int i = 0; i < kMostTries && kept < kWanted; ++i) {
    OperatorProcess* standby = &start_standby();
    const auto asked = Steady::now();
    const std::string former = holder();
    leader->signal(SIGTERM);
    scene_->until("the next leads", [&] { return !holder().empty() && holder() != former; });
    if (Steady::now() - asked <= kSigtermBound) ++kept;
    EXPECT_EQ(leader->wait(), 0);
    leader = standby;
  }
  EXPECT_EQ(kept, kWanted);
  scene_->start();
}

TEST_F(Outage, AStandbyLeadsWithinTwentySecondsOfASigkill) {
  OperatorProcess* leader = &start_operator({});
  scene_->start_and_run();
  int kept = 0;
  for (int i = 0; i < kMostTries && kept < kWanted; ++i) {
    OperatorProcess* standby = &start_standby();
    const std::string former = holder();
    const auto killed = Steady::now();
    leader->signal(SIGKILL);
    if (i == 0) scene_->end("faces-server-0-0", {22});
    scene_->until("the next leads", [&] { return !holder().empty() && holder() != former; });
    const auto took = Steady::now() - killed;
    if (took <= kSigkillBound) ++kept;
    EXPECT_GE(took, seconds(10)) << "a lease is not taken before it is over";
    leader = standby;
  }
  EXPECT_EQ(kept, kWanted);
  scene_->until("it counts the restart", [&] { return scene_->at("/restarts") == 1; });
  expect_no_duplicates();
}

TEST_F(Outage, ALeaderThatIsStoppedInItsTracksEndsItselfWhenItGoesOn) {
  OperatorProcess& first = start_operator({});
  scene_->until("the first leads", [&] { return !holder().empty(); });
  const std::string former = holder();
  start_operator({});
  scene_->start();
  first.signal(SIGSTOP);
  scene_->until("the second leads", [&] { return holder() != former; });
  first.signal(SIGCONT);
  EXPECT_NE(first.wait(), 0) << "it must not work on as if it led";
  scene_->run_all();
  scene_->until_condition("Running", "True/ServersReady");
  expect_no_duplicates();
}

TEST_F(Outage, TheApiServerRestartsWhileAJobStarts) {
  start_operator();
  Scene& scene = *scene_;
  scene.create(scene.sample({{"workers", {{"replicas", 8}}}}));
  cluster()->stop_api_server(SIGTERM);
  cluster()->start_api_server();
  scene.until("all pods exist", [&] { return scene.names().size() == 9; });
  expect_no_duplicates();
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  EXPECT_EQ(scene.at("/executionAttempts"), 1);
}

TEST_F(Outage, TheApiServerIsKilledWhileAJobRestarts) {
  start_operator();
  Scene& scene = *scene_;
  scene.start_and_run();
  scene.end("faces-server-0-0", {22});
  cluster()->stop_api_server(SIGKILL);
  cluster()->start_api_server();
  scene.until("the second attempt", [&] { return scene.at("/executionAttempts") == 2; });
  scene.until_server_of(2);
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  EXPECT_EQ(scene.at("/restarts"), 1);
  expect_no_duplicates();
}

TEST_F(Outage, TheOperatorStartsBeforeTheApiServer) {
  cluster()->stop_api_server(SIGKILL);
  start_operator();
  std::this_thread::sleep_for(seconds(2));
  cluster()->start_api_server();
  scene_->start();
  EXPECT_TRUE(operators_.back()->runs());
}

TEST_F(Outage, EtcdAnswersNobodyWhileAJobRestarts) {
  OperatorProcess& process = start_operator();
  Scene& scene = *scene_;
  scene.start_and_run();
  const int before = requests(process, failed_write);
  process.signal(SIGSTOP);  // it is to see nothing of it before the outage
  scene.end("faces-server-0-0", {22});
  scene.vanish("faces-worker-1-0");
  scene.until("all reads show it", [&] { return scene.names("worker").size() == 1; });
  cluster()->freeze_etcd();
  process.signal(SIGCONT);
  scene.until(
      "its writes fail", [&] { return requests(process, failed_write) > before; }, seconds(90));
  EXPECT_TRUE(process.runs());
  cluster()->thaw_etcd();
  scene.until("the second attempt", [&] {
    try {
      return scene.at("/executionAttempts") == 2 && scene.names("worker").size() == 2;
    } catch (const std::exception&) {
      return false;
    }
  });
  scene.until_server_of(2);
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
  EXPECT_EQ(scene.at("/executionAttempts"), 2);
  EXPECT_EQ(scene.at("/restarts"), 1);
  expect_no_duplicates();
}

TEST_F(Outage, EtcdDiesInTheMiddleOfACreate) {
  start_operator();
  Scene& scene = *scene_;
  scene.create(scene.sample({{"workers", {{"replicas", 8}}}}));
  cluster()->restart_etcd();
  scene.until("all pods exist", [&] {
    try {
      return scene.names().size() == 9;
    } catch (const std::exception&) {
      return false;
    }
  });
  expect_no_duplicates();
  EXPECT_EQ(scene.at("/executionAttempts"), 1);
}

TEST_F(Outage, ALeaderWithoutEtcdGivesUpAndComesBack) {
  OperatorProcess& leader = start_operator({});
  scene_->until("it leads", [&] { return !holder().empty(); });
  cluster()->freeze_etcd();
  EXPECT_NE(leader.wait(), 0) << "the lease could not be renewed: who knows who leads";
  cluster()->thaw_etcd();
  start_operator({});  // as its pod is started again
  scene_->until("a job can be made", [&] {
    try {
      if (scene_->find(kJobs, "faces").is_null()) scene_->create(scene_->sample());
      return true;
    } catch (const std::exception&) {
      return false;
    }
  });
  scene_->until("its pods exist", [&] { return scene_->names().size() == 3; });
}

}  // namespace
}  // namespace outrigger::integration
