#include "gpu-server/run_files.h"

#include <gtest/gtest.h>

#include "api/parse.h"
#include "common/error.h"
#include "common/file.h"
#include "tests/unit/api/sample_job.h"
#include "worker/job.h"

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

/// The files of runs in one folder.
class RunFilesInAFolder : public testing::Test {
 protected:
  RunFiles start(bool resume) {
    launch_.output = folder_.path();
    launch_.resume = resume;
    return {job_, launch_, graph_, {"ann", "bob"}};
  }
  std::filesystem::path checkpoints() const { return api::checkpoint_directory(job_, launch_); }

 private:
  const TemporaryDirectory folder_;
  const api::TrainingJob job_ = api::sample_job();
  const nn::Graph graph_ = worker::build_graph(job_, 2);
  api::Launch launch_;
};

TEST_F(RunFilesInAFolder, OfAFormerRunAreLeftAsTheyAreByAStartThatIsRefused) {
  RunFiles former = start(false);
  former.save(former.first_state());
  const auto unfinished = checkpoints() / ".step-2.0123456789abcdef";
  std::filesystem::create_directory(unfinished);
  EXPECT_THROW(start(false), InvalidInput);
  EXPECT_TRUE(std::filesystem::exists(unfinished));
  EXPECT_EQ(start(true).first_state().incarnation, 2u);
  EXPECT_FALSE(std::filesystem::exists(unfinished));
}

}  // namespace
}  // namespace outrigger::gpu_server
