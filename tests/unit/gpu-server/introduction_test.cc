#include "gpu-server/links/introduction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/cpu/backend.h"
#include "nn/graph_builder.h"

namespace outrigger::gpu_server {
namespace {

nn::Graph of_classes(int64_t classes) {
  nn::GraphBuilder builder("wide", {8, 8, 3});
  builder.add("normalize", nn::Normalize{{0.5f, 0.5f, 0.5f}, {0.25f, 0.25f, 0.25f}});
  builder.add("conv", nn::Convolution{.out_channels = 64, .kernel = 3, .padding = 1});
  builder.add("bn", nn::BatchNorm{});
  builder.add("relu", nn::Relu{});
  builder.add("conv2", nn::Convolution{.out_channels = 4, .kernel = 3, .padding = 1});
  builder.add("bn2", nn::BatchNorm{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = classes});
  return builder.build();
}

TEST(Introduction, AsksForWhatCrossesAtEveryCut) {
  const nn::Graph graph = of_classes(10);
  ASSERT_GT(graph.cuts().size(), 2U);
  const auto backend = nn::cpu::make_cpu_backend();
  ThreadPool threads(1);
  for (const auto& [cut, crossing] : crossings_of(graph, ElementType::kFloat32)) {
    const auto head = backend->compile(graph, {.segment = {cut, graph.size()}}, threads);
    Shape shape{1};
    shape.insert(shape.end(), crossing.sample.begin(), crossing.sample.end());
    EXPECT_EQ(head->input_spec().shape, shape) << cut;
    EXPECT_EQ(head->input_spec().type, crossing.type) << cut;
    EXPECT_EQ(static_cast<int64_t>(crossing.statistics), graph.buffer_range({0, cut}).size) << cut;
  }
}

TEST(Introduction, LetsNobodyScoreANetworkWhoseWeightsAreMoreThanAFrame) {
  EXPECT_TRUE(std::isfinite(scoring_memory(of_classes(10), 8)));
  EXPECT_TRUE(std::isfinite(scoring_memory(of_classes(1'000'000), 8)));
  EXPECT_TRUE(std::isinf(scoring_memory(of_classes(1'100'000), 8)));
}

}  // namespace
}  // namespace outrigger::gpu_server
