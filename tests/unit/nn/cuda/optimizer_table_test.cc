#include "nn/cuda/optimizer_table.h"

#include <gtest/gtest.h>

#include "nn/models.h"

namespace outrigger::nn::cuda {
namespace {

// The rule of one parameter, as the kernel finds it.
const OptimizerRange& rule_of(const OptimizerTable& table, uint32_t i) {
  uint32_t range = table.first[i / kOptimizerBlock];
  while (i >= table.ranges[range].end) ++range;
  return table.ranges[range];
}

void expect_rules(const Graph& graph, const SgdOptions& options) {
  const OptimizerTable table = plan_optimizer(graph, options);
  EXPECT_EQ(table.ranges.back().end, graph.parameter_count());
  EXPECT_EQ(table.first.size(),
            static_cast<size_t>((graph.parameter_count() + kOptimizerBlock - 1) / kOptimizerBlock));
  for (const Parameter& parameter : graph.parameters()) {
    const bool decays = options.decay_norm_and_bias || parameter.kind == ParameterKind::kWeight;
    for (const int64_t i : {parameter.range.offset, parameter.range.end() - 1}) {
      const OptimizerRange& rule = rule_of(table, static_cast<uint32_t>(i));
      EXPECT_EQ(rule.trains, parameter.trainable) << parameter.name;
      EXPECT_EQ(rule.decay, decays ? options.weight_decay : 0.0f) << parameter.name;
    }
  }
}

class OptimizerTableOf : public ::testing::TestWithParam<std::string> {};

TEST_P(OptimizerTableOf, GivesEveryParameterItsRule) {
  ModelOptions options{.name = GetParam(), .classes = 10};
  if (GetParam() == "lenet5") options.height = options.width = 28;
  for (const bool decay_all : {false, true}) {
    expect_rules(build_model(options), {.weight_decay = 5e-4f, .decay_norm_and_bias = decay_all});
  }
}
INSTANTIATE_TEST_SUITE_P(Models, OptimizerTableOf, ::testing::ValuesIn(model_names()));

TEST(OptimizerTable, KnowsFrozenLayersAndJoinsNeighbours) {
  ModelOptions options{.name = "resnet18", .classes = 10, .freeze_until = "layer4"};
  const Graph graph = build_model(options);
  expect_rules(graph, {.weight_decay = 1e-4f, .decay_norm_and_bias = true});
  const OptimizerTable table =
      plan_optimizer(graph, {.weight_decay = 1e-4f, .decay_norm_and_bias = true});
  EXPECT_EQ(table.ranges.size(), 2u) << "all that is frozen, and the head";
}

}  // namespace
}  // namespace outrigger::nn::cuda
