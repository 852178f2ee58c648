// Jobs in a queue of the real Kueue, on a real API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <memory>

#include "tests/integration/operator/fake_nodes.h"
#include "tests/integration/operator/kueue.h"

namespace outrigger::integration {
namespace {

/// What all tests share.
struct Stage {
  Stage() : client(cluster.admin()), nodes(client, 3), kueue(cluster) {
    process = std::make_unique<OperatorProcess>(cluster, "operator");
  }
  ControlPlane cluster;
  kube::Client client;
  FakeNodes nodes;  // without one its pods would be collected; two are racks
  Kueue kueue;
  std::unique_ptr<OperatorProcess> process;
};

class QueuedJob : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (missing().empty()) stage_ = std::make_unique<Stage>();
  }
  static void TearDownTestSuite() { stage_.reset(); }
  static std::string missing() {
    const std::string plane = ControlPlane::missing();
    return plane.empty() ? Kueue::missing() : plane;
  }

  void SetUp() override {
    if (const std::string what = missing(); !what.empty()) GTEST_SKIP() << what;
  }

  kube::Client& client() { return stage_->client; }
  /// A namespace with a queue of its own, or of another's ClusterQueue; none where `cpus` is 0.
  std::unique_ptr<Scene> scene(const std::string& ns, int cpus) {
    auto made = std::make_unique<Scene>(client(), ns);
    if (cpus > 0) {
      make_cluster_queue(client(), ns, cpus);
      make_queue(client(), ns, ns);
    }
    return made;
  }

  static std::unique_ptr<Stage> stage_;
};

std::unique_ptr<Stage> QueuedJob::stage_;

void until_queued(Scene& scene) {
  scene.until("it is queued", [&] {
    scene.finish_deletions();
    return scene.condition("Suspended") == "True/Queued";
  });
}

void until_running(Scene& scene, size_t pods) {
  scene.until("its pods exist", [&] { return scene.names().size() == pods; });
  scene.run_all();
  scene.until_condition("Running", "True/ServersReady");
}

void end_well(Scene& scene, const std::string& server) {
  scene.end(server, {0, "Completed"});
  scene.until_condition("Complete", "True/Trained");
  scene.until("its quota is free", [&] {
    scene.finish_deletions();
    return workload_condition(scene, "Finished") == "True/Succeeded";
  });
}

TEST_F(QueuedJob, WaitsForQuotaThenRunsWhereTheFlavorSaysAndFreesItAtTheEnd) {
  auto first = scene("kueue-first", 1);
  first->create(first->sample(of_one_cpu_each(2)));
  until_queued(*first);
  first->until("Kueue's own words", [&] {
    return first->message("Suspended").find("insufficient") != std::string::npos;
  });
  EXPECT_EQ(first->at("/state"), "Queued");
  EXPECT_TRUE(first->names().empty());
  set_quota(client(), "kueue-first", 3);
  until_running(*first, 3);
  const Json toleration{{"key", "pool"}, {"operator", "Exists"}};
  for (const Json& pod : first->pods()) {
    EXPECT_EQ(pod.at("/spec/nodeSelector/pool"_json_pointer), "kueue-first");
    EXPECT_THAT(pod.at("/spec/tolerations"_json_pointer), testing::Contains(toleration));
  }
  first->until("readiness is told",
               [&] { return workload_condition(*first, "PodsReady") == "True/Started"; });
  auto second = scene("kueue-second", 0);
  make_queue(client(), "kueue-second", "kueue-first");
  second->create(second->sample(of_one_cpu_each(2)));
  until_queued(*second);
  end_well(*first, "faces-server-0-0");
  until_running(*second, 3);
}

TEST_F(QueuedJob, IsPreemptedAndGoesOnLaterWithoutARestartCounted) {
  const kube::Resource classes{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass",
                               false};
  (void)client()
      .create(classes, {{"apiVersion", "scheduling.k8s.io/v1"},
                        {"kind", "PriorityClass"},
                        {"metadata", {{"name", "kueue-high"}}},
                        {"value", 1000}})
      .take();
  auto low = scene("kueue-low", 3);
  low->create(low->sample(of_one_cpu_each(2)));
  until_running(*low, 3);
  auto high = scene("kueue-high", 0);
  make_queue(client(), "kueue-high", "kueue-low");
  high->create(high->sample(
      of_one_cpu_each(1, {{"schedulingPolicy", {{"priorityClassName", "kueue-high"}}}})));
  low->until("its server is to end",
             [&] { return kube::is_deleting(low->pod("faces-server-0-0")); });
  EXPECT_TRUE(high->names().empty()) << "quota goes back with the last pod";
  low->end("faces-server-0-0", {20});
  until_queued(*low);
  until_running(*high, 2);
  EXPECT_EQ(high->pods("server").front().at("/spec/priority"_json_pointer), 1000);
  end_well(*high, "faces-server-0-0");
  until_running(*low, 3);
  EXPECT_EQ(low->at("/executionAttempts"), 2);
  EXPECT_EQ(low->status().value("restarts", 0), 0);
  EXPECT_EQ(low->condition("Restarting"), "");
}

TEST_F(QueuedJob, FailsWhereAForeignWorkloadHasItsName) {
  auto job = scene("kueue-foreign", 3);
  const Json container{{"name", "c"}, {"image", "registry.example/other:1"}};
  const Json pods{{"name", "main"},
                  {"count", 1},
                  {"template", {{"spec", {{"containers", Json::array({container})}}}}}};
  const Json foreign =
      client()
          .create(kWorkloads,
                  {{"apiVersion", "kueue.x-k8s.io/v1beta1"},
                   {"kind", "Workload"},
                   {"metadata", {{"name", "trainingjob-faces"}, {"namespace", "kueue-foreign"}}},
                   {"spec", {{"podSets", Json::array({pods})}}}})
          .take();
  job->create(job->sample(of_one_cpu_each(1)));
  job->until_condition("Failed", "True/NameCollision");
  EXPECT_THAT(job->message("Failed"), testing::HasSubstr("Workload trainingjob-faces"));
  EXPECT_TRUE(job->names().empty());
  job->stays(
      "the other's Workload is left alone",
      [&] {
        const Json after = job->find(kWorkloads, "trainingjob-faces");
        return !after.is_null() && kube::uid_of(after) == kube::uid_of(foreign) &&
               !kube::controller_of(after) && after.at("spec") == foreign.at("spec");
      },
      seconds(2));
}

TEST_F(QueuedJob, OfAMissingQueueWaitsForIt) {
  auto job = scene("kueue-missing", 0);
  make_cluster_queue(client(), "kueue-missing", 3);
  job->create(job->sample(of_one_cpu_each(1)));
  until_queued(*job);
  job->until("it says so",
             [&] { return job->message("Suspended").find("doesn't exist") != std::string::npos; });
  EXPECT_TRUE(job->names().empty());
  make_queue(client(), "kueue-missing", "kueue-missing");
  until_running(*job, 2);
}

TEST_F(QueuedJob, SaysWhichCheckItWaitsForAndEntersAnewAfterOnePutItOut) {
  auto job = scene("kueue-checks", 3);
  make_check(client(), "kueue-checks");
  job->create(job->sample(of_one_cpu_each(1)));
  const auto says = [&](const char* text) {
    job->until(text, [&] { return job->message("Suspended").find(text) != std::string::npos; });
  };
  says("admission checks: kueue-checks is Pending");
  check(*job, "kueue-checks", "Rejected", "no nodes to be had");
  says("has put the job out: ");
  says("kueue-checks, were rejected");
  EXPECT_EQ(job->condition("Suspended"), "True/Queued");
  EXPECT_TRUE(job->names().empty());
  job->change_spec({{"suspend", true}});
  job->until("its Workload is gone",
             [&] { return job->find(kWorkloads, "trainingjob-faces").is_null(); });
  job->change_spec({{"suspend", false}});
  says("admission checks: kueue-checks is Pending");
  check(*job, "kueue-checks", "Ready", "there they are");
  until_running(*job, 2);
}

TEST_F(QueuedJob, GivesQuotaOfFewerWorkersToOthersAndGetsNoMoreWithoutAsking) {
  auto big = scene("kueue-big", 4);
  big->create(big->sample(of_one_cpu_each(3)));
  until_running(*big, 4);
  auto small = scene("kueue-small", 0);
  make_queue(client(), "kueue-small", "kueue-big");
  small->create(small->sample(of_one_cpu_each(1)));
  until_queued(*small);
  big->change_spec({{"workers", {{"replicas", 1}}}});
  big->until("two workers are gone", [&] {
    big->finish_deletions();
    return big->names("worker").size() == 1;
  });
  until_running(*small, 2);
  big->change_spec({{"workers", {{"replicas", 3}}}});
  big->until_condition("Degraded", "True/NotAdmitted");
  EXPECT_EQ(big->names("worker").size(), 1U);
  EXPECT_EQ(big->condition("Running"), "True/ServersReady");
}

TEST_F(QueuedJob, ThatIsSuspendedGivesItsPlaceBackAndAsksAnew) {
  auto job = scene("kueue-suspended", 3);
  job->create(job->sample(of_one_cpu_each(1)));
  until_running(*job, 2);
  job->change_spec({{"suspend", true}});
  job->until("it is suspended", [&] {
    job->finish_deletions();
    return job->condition("Suspended") == "True/Suspended";
  });
  job->until("its Workload is gone",
             [&] { return job->find(kWorkloads, "trainingjob-faces").is_null(); });
  job->change_spec({{"suspend", false}, {"workers", {{"replicas", 2}}}});
  until_running(*job, 3);
  EXPECT_EQ(job->status().value("restarts", 0), 0);
}

TEST_F(QueuedJob, WhoseWorkloadSomebodyDeletesStopsAndQueuesAgain) {
  auto job = scene("kueue-deleted", 3);
  job->create(job->sample(of_one_cpu_each(1)));
  until_running(*job, 2);
  (void)client().remove(kWorkloads, {"kueue-deleted", "trainingjob-faces"});
  job->until("its server is to end",
             [&] { return kube::is_deleting(job->pod("faces-server-0-0")); });
  job->until("the next attempt", [&] {
    job->finish_deletions();
    return job->at("/executionAttempts") == 2;
  });
  until_running(*job, 2);
  EXPECT_EQ(job->status().value("restarts", 0), 0);
}

TEST_F(QueuedJob, RunsInTheRackThatTheQueueChose) {
  make_racks(client(), "kueue-racks", {"node-1", "node-2"});
  auto job = scene("kueue-racks", 3);
  const Json together{{"annotations", {{"kueue.x-k8s.io/podset-required-topology", kRack}}}};
  job->create(
      job->sample(of_one_cpu_each(2, {{"workers", {{"template", {{"metadata", together}}}}}})));
  job->until("Kueue has placed its pods", [&] {
    const auto pods = job->pods();
    return pods.size() == 3 && std::ranges::all_of(pods, [](const Json& pod) {
             return !pod.at("spec").contains("schedulingGates") &&
                    pod.at("/spec/nodeSelector"_json_pointer).contains(kRack);
           });
  });
  const auto rack = [](const Json& pod) { return pod.at("spec").at("nodeSelector").at(kRack); };
  EXPECT_EQ(rack(job->pod("faces-worker-0-0")), rack(job->pod("faces-worker-1-0")));
  job->run_all();
  job->until_condition("Running", "True/ServersReady");
}

// How many of a job's pods Kueue keeps from the scheduler, each by itself.
std::ptrdiff_t gated_pods(Scene& scene, const std::string& job) {
  const auto pods = scene.pods();
  return std::ranges::count_if(pods, [&](const Json& pod) {
    return kube::name_of(pod).starts_with(job + "-") && pod.at("spec").contains("schedulingGates");
  });
}

TEST_F(QueuedJob, WithTheLabelOfItsQueueIsQueuedOnceWhereAQueueIsTheDefault) {
  auto job = scene("kueue-default", 4);
  make_queue(client(), "kueue-default", "kueue-default", "default");
  Json with_label = job->sample(of_one_cpu_each(1));
  with_label["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team-a";
  Json without = job->sample(of_one_cpu_each(1));
  without["metadata"]["name"] = "without";
  (void)client().create(kJobs, without).take();
  job->until("Kueue queues pods", [&] { return gated_pods(*job, "without") == 2; });
  job->create(with_label);
  job->until("its pods exist", [&] { return job->names().size() == 4; });
  EXPECT_EQ(gated_pods(*job, "faces"), 0);
}

TEST_F(QueuedJob, RunsOnWhileTheOperatorStartsAgain) {
  auto job = scene("kueue-runs-on", 3);
  job->create(job->sample(of_one_cpu_each(1)));
  until_running(*job, 2);
  const std::string uid = kube::uid_of(job->pod("faces-server-0-0"));
  stage_->process->signal(SIGTERM);
  EXPECT_EQ(stage_->process->wait(), 0) << stage_->process->log();
  stage_->process = std::make_unique<OperatorProcess>(stage_->cluster, "operator-again");
  job->change_spec({{"workers", {{"replicas", 0}}}});
  job->until("the new operator scales", [&] {
    job->finish_deletions();
    return job->names("worker").empty();
  });
  EXPECT_EQ(kube::uid_of(job->pod("faces-server-0-0")), uid);
  EXPECT_EQ(job->at("/executionAttempts"), 1);
}

}  // namespace
}  // namespace outrigger::integration
