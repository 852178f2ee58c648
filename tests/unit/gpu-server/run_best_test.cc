#include "gpu-server/run_best.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

using api::EvaluationMetric;

TEST(Best, IsJudgedByWhatTheJobSays) {
  const training::EvaluationResult result{
      .accuracy = 0.5, .verification = 0.75, .identification = 0.25, .samples = 4};
  EXPECT_EQ(metric_of(EvaluationMetric::kAccuracy, result), 0.5);
  EXPECT_EQ(metric_of(EvaluationMetric::kVerification, result), 0.75);
  EXPECT_EQ(metric_of(EvaluationMetric::kIdentification, result), 0.25);
}

TEST(Best, IsNotJudgedByWhatIsNoNumber) {
  training::EvaluationResult result{.accuracy = 0, .samples = 4, .not_finite = 3};
  EXPECT_EQ(metric_of(EvaluationMetric::kVerification, result), std::nullopt);
  EXPECT_EQ(metric_of(EvaluationMetric::kIdentification, result), std::nullopt);
  EXPECT_EQ(metric_of(EvaluationMetric::kAccuracy, result), 0);
  result.not_finite = 4;
  EXPECT_EQ(metric_of(EvaluationMetric::kAccuracy, result), std::nullopt);
}

TEST(Best, OfPeopleWhoWereNotTrainedOnIsJudgedByTheirEmbeddings) {
  const training::EvaluationResult result{.verification = 0.75, .samples = 4};
  EXPECT_EQ(metric_of(EvaluationMetric::kVerification, result), 0.75);
  EXPECT_EQ(metric_of(EvaluationMetric::kAccuracy, result), std::nullopt);
}

TEST(Best, IsTheHighestSoFarAndNeverOneThatWasNotMeasured) {
  training::TrainingState state;
  state.step = 5;
  EXPECT_FALSE(note_metric(std::nullopt, state, state));
  EXPECT_EQ(state.best_step, -1);
  EXPECT_EQ(state.evaluations_without_gain, 1);
  EXPECT_TRUE(note_metric(0.5, state, state));
  EXPECT_EQ(state.best_step, 5);
  EXPECT_EQ(state.evaluations_without_gain, 0);
  state.step = 10;
  EXPECT_FALSE(note_metric(0.5, state, state));
  EXPECT_FALSE(note_metric(std::nullopt, state, state));
  EXPECT_EQ(state.evaluations_without_gain, 2);
  training::TrainingState former;  // evaluated beside training
  former.step = 7;
  EXPECT_TRUE(note_metric(0.75, state, former));
  EXPECT_EQ(state.best_step, 7);
  EXPECT_EQ(former.best_metric, 0.75);
}

}  // namespace
}  // namespace outrigger::gpu_server
