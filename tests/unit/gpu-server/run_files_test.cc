#include "gpu-server/run_files.h"

#include <gtest/gtest.h>

#include "api/parse.h"

namespace outrigger::gpu_server {
namespace {

api::TrainingJob job_of_two_ranks(int sync_every) {
  api::TrainingJob job = api::resolve_training_job(R"({
    "apiVersion": "outrigger.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "faces"},
    "spec": {
      "server": {"replicas": 2},
      "model": {"name": "resnet18"},
      "data": {"train": {"path": "faces"}, "image": {"height": 64, "width": 64}},
      "training": {"epochs": 3, "batchSize": 32, "microBatchSize": 4,
                   "schedule": {"constant": {"base": 0.1}}},
      "output": {"path": "runs"}}})")
                             .job;
  job.spec.training.sync_every_steps = sync_every;
  return job;
}

// As PyTorch's num_batches_tracked counts them.
TEST(RunFiles, CountTheMicroBatchesThatAModelsRunningAveragesHaveSeen) {
  EXPECT_EQ(averaged_micro_batches(job_of_two_ranks(1), 10), 80);
  EXPECT_EQ(averaged_micro_batches(job_of_two_ranks(5), 10), 40) << "a mean of two ranks' averages";
}

}  // namespace
}  // namespace outrigger::gpu_server
