#include "api/support.h"

#include <gtest/gtest.h>

#include "api/exit_codes.h"
#include "sample_job.h"

namespace outrigger::api {
namespace {

// On one machine and in a cluster.
TrainingJob runnable() {
  TrainingJob job = sample_job("  split: {cut: Input}\n");
  job.spec.output.path = "/runs";
  return job;
}

struct NotBuilt {
  void (*change)(TrainingJobSpec&);
  const char* error;
};

class NotBuiltYet : public testing::TestWithParam<NotBuilt> {};

TEST_P(NotBuiltYet, IsRefusedWithWhatToWriteInstead) {
  TrainingJob job = runnable();
  GetParam().change(job.spec);
  EXPECT_EQ(to_string(check_supported(job, {})), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, NotBuiltYet,
    testing::Values(
        NotBuilt{
            [](TrainingJobSpec& s) { s.suspend = true; },
            "spec.suspend: true: only a cluster keeps a suspended job; write false to run it here"},
        NotBuilt{[](TrainingJobSpec& s) { s.active_deadline = std::chrono::seconds(5); },
                 "spec.activeDeadlineSeconds: only the operator of a cluster holds this deadline "
                 "yet; leave it out to "
                 "run the job here"},
        NotBuilt{[](TrainingJobSpec& s) { s.data.train.urls = {"http://h/a.tar"}; },
                 "spec.data.train.urls: reading shards from addresses is not built yet; put them "
                 "into a folder and "
                 "give path"},
        NotBuilt{
            [](TrainingJobSpec& s) { s.data.validation = DataSource{.urls = {"http://h/a.tar"}}; },
            "spec.data.validation.urls: reading shards from addresses is not built yet; put them "
            "into a folder "
            "and give path"},
        NotBuilt{
            [](TrainingJobSpec& s) { s.training.precision = Precision::kFloat16; },
            "spec.training.precision: Float16 needs a server on a GPU (spec.server.gpus); write "
            "BFloat16 or Float32"},
        NotBuilt{
            [](TrainingJobSpec& s) {
              s.training.sync_every_steps = 2;
              s.training.staleness = 1;
            },
            "spec.training.syncEverySteps: more than 1 is not built yet beside staleness; write "
            "1, or staleness: 0"},
        NotBuilt{[](TrainingJobSpec& s) {
                   s.training.all_reduce_precision = AllReducePrecision::kBFloat16;
                 },
                 "spec.training.allReducePrecision: BFloat16 is for gradients that several ranks "
                 "add in every step; write Float32"},
        NotBuilt{[](TrainingJobSpec& s) {
                   s.server.replicas = 2;
                   s.training.sync_every_steps = 2;
                   s.training.all_reduce_precision = AllReducePrecision::kBFloat16;
                 },
                 "spec.training.allReducePrecision: BFloat16 is for gradients that several ranks "
                 "add in every step; write Float32"},
        NotBuilt{[](TrainingJobSpec& s) {
                   s.server.replicas = 2;
                   s.training.loss = ArcFace{.partial_fc = PartialFc{}};
                   s.training.sync_every_steps = 2;
                 },
                 "spec.training.loss.arcFace.partialFC: needs ranks that step together; write "
                 "syncEverySteps: 1"},
        NotBuilt{[](TrainingJobSpec& s) { s.server.gpus = 1; },
                 "spec.server.gpus: no GPU can be used here; write 0 to train on the CPU"},
        NotBuilt{[](TrainingJobSpec& s) { s.server.engine = Engine::kExternal; },
                 "spec.server.engine: External: only a cluster runs an image of your own; write "
                 "Builtin to run it here"},
        NotBuilt{[](TrainingJobSpec& s) { s.network.interface = "eth0"; },
                 "spec.network.interface: choosing an interface is not built yet; leave it out, "
                 "links go as the "
                 "system routes"},
        NotBuilt{[](TrainingJobSpec& s) { s.network.encryption = Encryption::kTls; },
                 "spec.network.encryption: TLS is not built yet; write None, in a network that you "
                 "trust"}));

TEST(Supported, APlainJobPasses) {
  EXPECT_EQ(to_string(check_supported(runnable(), {})), "");
  EXPECT_EQ(to_string(check_supported(runnable(), {.cluster = true})), "");
}

TEST(Supported, ALayerAsTheCutPassesWithItsShare) {
  TrainingJob job = runnable();
  job.spec.split = {.cut = "layer1", .share_percent = 0};
  EXPECT_EQ(to_string(check_supported(job, {})), "");
}

TEST(Supported, WhatOnlyAClusterFollowsPassesOnOneMachine) {
  TrainingJob job = runnable();
  job.spec.scheduling_policy = SchedulingPolicy{.gang = Gang::kVolcano, .queue = "team-a"};
  job.spec.managed_by = "kueue.x-k8s.io/multikueue";
  job.spec.server.pod_template = nlohmann::json::object();
  job.spec.workers.max_replicas = 4;
  job.spec.workers.autoscaling = AutoscalingSpec{};
  EXPECT_EQ(to_string(check_supported(job, {})), "");
  EXPECT_EQ(to_string(check_supported(job, {.cluster = true})),
            "spec.managedBy: the operator leaves this job to whoever manages it, and MultiKueue "
            "knows no TrainingJobs yet; leave it out\n"
            "spec.schedulingPolicy.gang: Volcano is not built yet; write None");
}

TEST(Supported, PodsHaveNoPlaceForSomeOfWhatRunsOnOneMachine) {
  TrainingJob job = runnable();
  job.spec.network.port = 8080;
  job.spec.output.path = "runs";
  job.spec.checkpoint.path = "runs/saved";
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team-a";
  EXPECT_EQ(to_string(check_supported(job, {})), "");
  EXPECT_EQ(to_string(check_supported(job, {.cluster = true})),
            "spec.network.port: 8080: a pod shows its status at this port; take another\n"
            "spec.output.path: a pod's folder is at a path that begins with /, like /output\n"
            "spec.checkpoint.path: a pod's folder is at a path that begins with /, like "
            "/checkpoints\n"
            "metadata.labels: take kueue.x-k8s.io/queue-name off and name the queue in "
            "spec.schedulingPolicy.queue; beside that the label may name the same one");
}

TEST(Supported, TheLabelOfAQueueMayOnlyRepeatTheField) {
  TrainingJob job = runnable();
  job.spec.output.path = "/runs";
  job.spec.scheduling_policy = SchedulingPolicy{.queue = "team-a"};
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team-a";
  EXPECT_EQ(to_string(check_supported(job, {.cluster = true})), "");
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team-b";
  EXPECT_NE(to_string(check_supported(job, {.cluster = true})), "");
  job.spec.scheduling_policy = SchedulingPolicy{.priority_class_name = "high"};
  EXPECT_NE(to_string(check_supported(job, {.cluster = true})), "");
}

TEST(Supported, RanksThatAddGradientsMayDoSoInBFloat16) {
  TrainingJob job = runnable();
  job.spec.server.replicas = 2;
  job.spec.training.all_reduce_precision = AllReducePrecision::kBFloat16;
  EXPECT_EQ(to_string(check_supported(job, {})), "");
}

TEST(Supported, AGpuBuildTakesGpus) {
  TrainingJob job = runnable();
  job.spec.server.gpus = 1;
  job.spec.training.precision = Precision::kFloat16;
  EXPECT_EQ(to_string(check_supported(job, {.gpu = true})), "");
  EXPECT_EQ(to_string(check_supported(job, {.cluster = true, .gpu = true})), "");
  job.spec.training.recompute = Recompute::kActivations;
  EXPECT_EQ(to_string(check_supported(job, {.gpu = true})), "");
  job.spec.training.loss = ArcFace{.partial_fc = PartialFc{}};
  EXPECT_EQ(to_string(check_supported(job, {.gpu = true})),
            "spec.training.loss.arcFace.partialFC: is not built yet for Float16; write precision: "
            "BFloat16");
  job.spec.training.precision = Precision::kBFloat16;
  EXPECT_EQ(to_string(check_supported(job, {.gpu = true})), "");
  job.spec.training = runnable().spec.training;
  job.spec.training.precision = Precision::kFloat16;
  job.spec.server.gpus = 2;
  EXPECT_EQ(to_string(check_supported(job, {.cluster = true, .gpu = true})), "");
  job.spec.server.gpus = 0;
  EXPECT_NE(to_string(check_supported(job, {.cluster = true, .gpu = true})), "");
}

TEST(Supported, TheRefusalEndsTheProcessAsNotSupported) {
  TrainingJob job = runnable();
  job.spec.training.precision = Precision::kFloat16;
  try {
    require_supported(job, {});
    FAIL() << "a precision without a kernel was taken";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::kNotSupported);
  }
}

}  // namespace
}  // namespace outrigger::api
