#include "nn/optimizer.h"

#include <gmock/gmock.h>

#include "nn/graph_builder.h"
#include "nn/models.h"
#include "nn/schedule.h"

namespace outrigger::nn {
namespace {

// Parameters: bn.weight, bn.bias {2}; fc.weight {1, 2}; fc.bias {1}: seven floats.
Graph small(const std::string& freeze = "") {
  GraphBuilder builder("net", {1, 1, 2});
  builder.add("normalize", Normalize{{0, 0}, {1, 1}});
  builder.add("bn", BatchNorm{});
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{1});
  if (!freeze.empty()) builder.freeze_until(freeze);
  return builder.build();
}

constexpr size_t kFirstWeight = 4;  // fc.weight

TEST(Sgd, WithoutMomentumGoesAgainstTheGradient) {
  std::vector<float> parameters(7, 1.0f), momentum(7, 0.0f);
  const std::vector<float> gradients{1, 2, 3, 4, 5, 6, 7};
  sgd_step(small(), {}, 0.5f, gradients, momentum, parameters);
  EXPECT_THAT(parameters, ::testing::ElementsAre(0.5f, 0, -0.5f, -1, -1.5f, -2, -2.5f));
}

// By hand after PyTorch's documentation: b = 0.9 b + g; p -= 0.1 b, or, with Nesterov, p -= 0.1 (g
// + 0.9 b).
TEST(Sgd, MomentumGathersAndNesterovLooksAhead) {
  for (const bool nesterov : {false, true}) {
    std::vector<float> parameters(7, 0.0f), momentum(7, 0.0f);
    const std::vector<float> gradients(7, 1.0f);
    for (int step = 0; step < 2; ++step) {
      sgd_step(small(), {.momentum = 0.9f, .nesterov = nesterov}, 0.1f, gradients, momentum,
               parameters);
    }
    EXPECT_FLOAT_EQ(momentum[0], 1.9f);
    EXPECT_FLOAT_EQ(parameters[0], nesterov ? -(0.19f + 0.271f) : -(0.1f + 0.19f));
  }
}

TEST(Sgd, WeightDecaySparesNormsAndBiasesUnlessAsked) {
  const std::vector<float> gradients(7, 0.0f);
  for (const bool everything : {false, true}) {
    std::vector<float> parameters(7, 1.0f), momentum(7, 0.0f);
    sgd_step(small(), {.weight_decay = 0.1f, .decay_norm_and_bias = everything}, 1.0f, gradients,
             momentum, parameters);
    for (size_t i = 0; i < 7; ++i) {
      const bool weight = i == kFirstWeight || i == kFirstWeight + 1;
      EXPECT_FLOAT_EQ(parameters[i], weight || everything ? 0.9f : 1.0f) << i;
    }
  }
}

TEST(Sgd, LeavesFrozenParametersAndTheirMomentumAlone) {
  std::vector<float> parameters(7, 1.0f), momentum(7, 0.0f);
  const std::vector<float> gradients(7, 1.0f);
  const Graph graph = small("bn");
  sgd_step(graph, {.momentum = 0.9f, .weight_decay = 0.1f, .decay_norm_and_bias = true}, 1.0f,
           gradients, momentum, parameters);
  EXPECT_EQ(parameters[0], 1.0f);
  EXPECT_EQ(momentum[0], 0.0f);
  EXPECT_NE(parameters[kFirstWeight], 1.0f);
  EXPECT_EQ(sum_of_squares(graph, gradients), 3.0);
}

TEST(AverageWeights, MovesTowardsTheParameters) {
  const std::vector<float> parameters{1, 2};
  std::vector<float> averaged{0, 4};
  average_weights(0.75f, parameters, averaged);
  EXPECT_THAT(averaged, ::testing::ElementsAre(0.25f, 3.5f));
}

TEST(RunningAverages, TakeTheMeanAndTheUnbiasedVariance) {
  const Graph graph = small();
  std::vector<float> buffers{0, 0, 1, 1};
  const std::vector<float> statistics{1, 2, 3, 6};  // over 4 samples of one value
  update_running_averages(graph, graph.whole(), 4, statistics, buffers);
  EXPECT_FLOAT_EQ(buffers[0], 0.1f);
  EXPECT_FLOAT_EQ(buffers[1], 0.2f);
  EXPECT_FLOAT_EQ(buffers[2], 0.9f + 0.1f * 4);
  EXPECT_FLOAT_EQ(buffers[3], 0.9f + 0.1f * 8);
}

TEST(RunningAverages, OfFrozenNormsStay) {
  const Graph graph = small("bn");
  std::vector<float> buffers{0, 0, 1, 1};
  const std::vector<float> statistics(4, 9.0f);
  update_running_averages(graph, graph.whole(), 4, statistics, buffers);
  EXPECT_THAT(buffers, ::testing::ElementsAre(0, 0, 1, 1));
}

TEST(Schedule, WarmsUpEvenlyToTheBase) {
  const Schedule schedule{.base = 0.4, .warmup_steps = 4, .kind = ConstantSchedule{}};
  EXPECT_FLOAT_EQ(learning_rate(schedule, 0, 100), 0.1f);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 3, 100), 0.4f);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 99, 100), 0.4f);
}

TEST(Schedule, StepsDropAtMilestonesOrEverySoManySteps) {
  const Schedule at{.base = 1, .kind = StepSchedule{.milestones = {10, 20}, .gamma = 0.1}};
  EXPECT_FLOAT_EQ(learning_rate(at, 9, 30), 1.0f);
  EXPECT_FLOAT_EQ(learning_rate(at, 10, 30), 0.1f);
  EXPECT_FLOAT_EQ(learning_rate(at, 20, 30), 0.01f);
  const Schedule every{.base = 1, .kind = StepSchedule{.every = 5, .gamma = 0.5}};
  EXPECT_FLOAT_EQ(learning_rate(every, 4, 30), 1.0f);
  EXPECT_FLOAT_EQ(learning_rate(every, 14, 30), 0.25f);
}

TEST(Schedule, CosineFallsFromTheBaseToTheLeast) {
  const Schedule schedule{.base = 0.2, .warmup_steps = 10, .kind = CosineSchedule{.least = 0.02}};
  EXPECT_FLOAT_EQ(learning_rate(schedule, 10, 111), 0.2f);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 60, 111), 0.11f);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 110, 111), 0.02f);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 500, 111), 0.02f);
  const Schedule one_step{.base = 0.2, .kind = CosineSchedule{}};
  EXPECT_FLOAT_EQ(learning_rate(one_step, 0, 1), 0.2f);
}

}  // namespace
}  // namespace outrigger::nn
