#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "tests/fakes/simulation.h"
#include "tests/fakes/small_job.h"
#include "training/trainer/trainer.h"

namespace outrigger {
namespace {

nn::Graph graph_frozen_until(const std::optional<std::string>& name) {
  nn::GraphBuilder builder("frozen", {6, 6, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 3, .kernel = 3});
  builder.add("relu1", nn::Relu{});
  builder.add("conv2", nn::Convolution{.out_channels = 3, .kernel = 3});
  builder.add("relu2", nn::Relu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  if (name) builder.freeze_until(*name);
  return builder.build();
}

/// Versions and sizes of the stems that go out before the first step.
std::map<uint64_t, size_t> published_at_first(const nn::Graph& graph) {
  const auto backend = nn::make_reference_backend();
  const data::Dataset dataset = fakes::three_classes(20);
  fakes::Simulation::World world;
  world.graph = &graph;
  world.backend = backend.get();
  world.dataset = &dataset;
  world.coordinator.total_steps = 1;
  world.order = {.samples = 20};
  fakes::Simulation simulation(world, {.plans = {{.number = 1}}}, nullptr);
  ThreadPool threads(1);
  const training::Trainer trainer({}, graph, *backend, threads, simulation, simulation,
                                  fakes::fresh_state(graph));
  return simulation.published();
}

TEST(PublishedStems, AreNoneBeforeTheFirstStepWhereNothingIsFrozen) {
  EXPECT_THAT(published_at_first(graph_frozen_until(std::nullopt)), testing::IsEmpty());
}

TEST(PublishedStems, AreOfWhatIsFrozenAndNoMore) {
  const nn::Graph graph = graph_frozen_until("relu1");
  const auto frozen =
      static_cast<size_t>(graph.parameter_range({0, graph.cut("relu1").layers}).size);
  ASSERT_GT(frozen, 0u);
  EXPECT_THAT(published_at_first(graph),
              testing::ElementsAre(testing::Pair(feed::kFrozenStem, frozen)));
}

}  // namespace
}  // namespace outrigger
