#include "gpu-server/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/parse.h"
#include "common/error.h"
#include "common/file.h"
#include "nn/cpu/instruction_set.h"
#include "tests/support/own_process.h"
#include "tests/unit/api/sample_job.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

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
  RunFilesInAFolder() { list({"ann", "bob"}, 4); }

  void list(std::vector<std::string> classes, int samples, const std::string& type = ".png") {
    train_ = {};
    train_.set_classes(std::move(classes));
    train_.begin_container("", false);
    for (int i = 0; i < samples; ++i) train_.add_file(std::to_string(i) + type, i % 2);
    train_.finish();
  }
  RunFiles start(bool resume) {
    launch_.output = folder_.path();
    launch_.resume = resume;
    return {job_, launch_, graph_, train_};
  }
  /// A run that has found sample 1 broken and then ended.
  void run_once() {
    RunFiles files = start(false);
    training::TrainingState state = files.first_state();
    state.bad_samples = {1};
    files.save(state);
  }
  /// What it left tells this instead.
  template <typename Edit>
  void rewrite_metadata(const Edit& edit) {
    auto found = training::load_newest_checkpoint(checkpoints(), graph_).value();
    edit(found.metadata);
    training::CheckpointStore(checkpoints(), {}).save(found.state, graph_, found.metadata);
  }
  std::string said_at_a_resumed_start() {
    testing::internal::CaptureStderr();
    start(true).first_state();
    return testing::internal::GetCapturedStderr();
  }
  std::filesystem::path checkpoints() const { return api::checkpoint_directory(job_, launch_); }

  void evaluate_by(api::EvaluationMetric metric) {
    job_.spec.training.evaluate.emplace().metric = metric;
  }
  /// A run that has its best, and ends while another state is evaluated.
  void run_once_with_a_best() {
    RunFiles files = start(false);
    training::TrainingState state = files.first_state();
    state.best_step = 0;
    state.best_metric = 0.9;
    state.evaluations_without_gain = 2;
    state.evaluating = std::make_shared<training::TrainingState>(state);
    files.save(state);
  }

  api::TrainingJob job_ = api::sample_job();

 private:
  const TemporaryDirectory folder_;
  const nn::Graph graph_ = worker::build_graph(job_, 2);
  data::Dataset train_;
  api::Launch launch_;
};

TEST_F(RunFilesInAFolder, WithAnAverageThatTheJobNoLongerWantsGoOnWithoutIt) {
  job_.spec.training.average_weights = 0.9;
  run_once_with_a_best();
  EXPECT_FALSE(start(true).first_state().averaged.empty());
  job_.spec.training.average_weights.reset();
  const auto state = start(true).first_state();
  EXPECT_THAT(state.averaged, IsEmpty());
  EXPECT_THAT(state.evaluating->averaged, IsEmpty());
}

TEST_F(RunFilesInAFolder, WithoutAnAverageThatTheJobWantsNowBeginItWithTheWeights) {
  job_.spec.training.average_weights.reset();
  run_once_with_a_best();
  EXPECT_THAT(start(true).first_state().averaged, IsEmpty());
  job_.spec.training.average_weights = 0.9;
  const auto state = start(true).first_state();
  EXPECT_EQ(state.averaged, state.parameters);
  EXPECT_EQ(state.evaluating->averaged, state.evaluating->parameters);
}

TEST_F(RunFilesInAFolder, KnowTheBestOnlyByTheMetricThatItWasTheBestBy) {
  evaluate_by(api::EvaluationMetric::kAccuracy);
  run_once_with_a_best();
  EXPECT_EQ(start(true).first_state().best_metric, 0.9);
  evaluate_by(api::EvaluationMetric::kVerification);
  testing::internal::CaptureStderr();
  const auto state = start(true).first_state();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("metric was Accuracy up to step 0 and is Verification now"));
  EXPECT_EQ(state.best_step, -1);
  EXPECT_EQ(state.evaluations_without_gain, 0);
  EXPECT_EQ(state.evaluating->best_step, -1);
}

TEST_F(RunFilesInAFolder, KeepTheMetricOfTheBestThroughARunThatEvaluatesNothing) {
  evaluate_by(api::EvaluationMetric::kAccuracy);
  run_once_with_a_best();
  job_.spec.training.evaluate.reset();
  {
    RunFiles files = start(true);
    training::TrainingState state = files.first_state();
    EXPECT_EQ(state.best_step, 0);
    ++state.step;
    files.save(state);
  }
  evaluate_by(api::EvaluationMetric::kAccuracy);
  EXPECT_EQ(start(true).first_state().best_metric, 0.9);
  evaluate_by(api::EvaluationMetric::kVerification);
  EXPECT_EQ(start(true).first_state().best_step, -1);
}

TEST_F(RunFilesInAFolder, OfAFormerRunAreLeftAsTheyAreByAStartThatIsRefused) {
  run_once();
  const auto unfinished = checkpoints() / ".step-2.0123456789abcdef";
  std::filesystem::create_directory(unfinished);
  EXPECT_THROW(start(false), InvalidInput);
  EXPECT_TRUE(std::filesystem::exists(unfinished));
  EXPECT_EQ(start(true).first_state().incarnation, 2u);
  EXPECT_FALSE(std::filesystem::exists(unfinished));
}

// A renamed folder moves all labels behind it.
TEST_F(RunFilesInAFolder, OfOtherClassesAreNotGoneOnFrom) {
  run_once();
  list({"bob", "zoe"}, 4);
  EXPECT_THAT([&] { start(true).first_state(); },
              ThrowsMessage<InvalidInput>(HasSubstr("label 0 was \"ann\" and is \"bob\"")));
}

TEST_F(RunFilesInAFolder, KnowBrokenSamplesByNumbersThatOtherDataDoesNotShare) {
  run_once();
  EXPECT_THAT(start(true).first_state().bad_samples, ElementsAre(1));
  list({"ann", "bob"}, 5);
  EXPECT_THAT(start(true).first_state().bad_samples, IsEmpty());
  list({"ann", "bob"}, 4, ".jpg");
  EXPECT_THAT(start(true).first_state().bad_samples, IsEmpty()) << "as many, but others";
  EXPECT_THAT(said_at_a_resumed_start(), HasSubstr("spec.data.train lists other samples"));
}

TEST_F(RunFilesInAFolder, OfAVersionThatDidNotTellItsDataAreGoneOnFrom) {
  run_once();
  rewrite_metadata([](training::CheckpointMetadata& metadata) { metadata.erase("data"); });
  EXPECT_THAT(start(true).first_state().bad_samples, ElementsAre(1));
  EXPECT_THAT(said_at_a_resumed_start(), Not(HasSubstr("spec.data.train")));
}

// Of a machine with less, which the run has left for this one.
TEST_F(RunFilesInAFolder, ImposeTheInstructionSetThatTheRunWasComputedWith) {
  testing_support::in_own_process([&] {
    run_once();
    rewrite_metadata([](training::CheckpointMetadata& metadata) {
      EXPECT_EQ(metadata.at("instructionSet"), nn::cpu::best_instruction_set());
      metadata["instructionSet"] = "baseline";
    });
    EXPECT_EQ(start(true).first_state().incarnation, 2U);
    EXPECT_EQ(nn::cpu::instruction_set(), "baseline");
  });
}

TEST_F(RunFilesInAFolder, WarnOfAnotherMicroBatchForBatchNorm) {
  job_.spec.training.micro_batch_size = 8;
  run_once();
  job_.spec.training.micro_batch_size = 16;
  EXPECT_THAT(said_at_a_resumed_start(),
              HasSubstr("microBatchSize, over which batch norm takes its statistics, was 8 up to "
                        "step 0 and is 16 now"));
}

TEST_F(RunFilesInAFolder, NameTheFieldsThatAreNotAsTheyWereInOneWarning) {
  run_once();
  job_.spec.training.epochs = 30;
  EXPECT_THAT(said_at_a_resumed_start(), Not(HasSubstr("not as they were")))
      << "training for longer is what one resumes for";
  job_.spec.training.clip_gradient_norm = 3;
  job_.spec.training.schedule = api::CosineSchedule{};
  job_.spec.data.augment.emplace_back(api::RandomHorizontalFlip{});
  EXPECT_THAT(said_at_a_resumed_start(),
              HasSubstr("not as they were up to step 0: spec.training.clipGradientNorm, "
                        "spec.training.schedule, spec.data.augment: "));
}

TEST_F(RunFilesInAFolder, SayThatAJobNamesWeightsThatAreNotThere) {
  job_.spec.model.weights = "no/such.safetensors";
  EXPECT_THAT([&] { start(false).first_state(); },
              ThrowsMessage<InvalidInput>(
                  AllOf(HasSubstr("spec.model.weights: "), HasSubstr("no/such.safetensors"))));
}

TEST_F(RunFilesInAFolder, WarnOfLayersThatAreFrozenAtRandom) {
  const auto said = [&] {
    testing::internal::CaptureStderr();
    start(false).first_state();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(), Not(HasSubstr("freezeUntil")));
  job_.spec.model.freeze_until = "pool1";
  EXPECT_THAT(said(), HasSubstr("spec.model.freezeUntil: the layers up to pool1 keep weights"));
}

}  // namespace
}  // namespace outrigger::gpu_server
