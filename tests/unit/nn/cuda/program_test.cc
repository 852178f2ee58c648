#include "nn/cuda/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "host_engine.h"
#include "network_run.h"
#include "nn/graph_builder.h"
#include "nn/models.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

using cuda::testing::HostPlans;
using cuda::testing::make_host_backend;
using testing::draw_network_values;
using testing::narrow_resnet;
using testing::relative_distance;
using testing::run_network;

// Of what a pass of a whole network gives.
struct Distances {
  double output, statistics, gradients;
};

Distances distances(const Graph& graph, Precision precision, const std::vector<int>& cuts,
                    HostPlans plans = HostPlans::kNone) {
  ThreadPool threads(1);
  const auto values = draw_network_values(graph, 4);
  const auto expected =
      run_network(*make_reference_backend(), threads, graph, Precision::kFloat32, values);
  const auto actual = run_network(*make_host_backend(nullptr, false, plans), threads, graph,
                                  precision, values, cuts);
  return {relative_distance(actual.output, expected.output),
          relative_distance(actual.statistics, expected.statistics),
          relative_distance(actual.gradients, expected.gradients)};
}

TEST(CudaProgram, RunsAWholeNetworkAsTheReference) {
  const Distances far = distances(narrow_resnet(), Precision::kFloat32, {});
  EXPECT_LT(far.output, 1e-5);
  EXPECT_LT(far.statistics, 1e-5);
  EXPECT_LT(far.gradients, 1e-3);  // a rounding moves what lies at a ReLU's kink
}

TEST(CudaProgram, GivesTheSameCutOrWhole) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(1);
  const auto values = draw_network_values(graph, 4);
  const auto backend = cuda::testing::make_host_backend();
  const auto whole = run_network(*backend, threads, graph, Precision::kFloat32, values);
  const auto cut = run_network(*backend, threads, graph, Precision::kFloat32, values,
                               {graph.cut("maxpool").layers, graph.cut("layer2").layers});
  EXPECT_EQ(cut, whole);
}

// bfloat16 keeps 8 bits, so one rounding is off by 2^-9 at most; some twenty follow one another
// here.
TEST(CudaProgram, InBFloat16IsAsNearAsItsDigits) {
  const Graph graph = narrow_resnet();
  const Distances far = distances(graph, Precision::kBFloat16,
                                  {graph.cut("layer1").layers, graph.cut("avgpool").layers});
  EXPECT_LT(far.output, 0.05);
  EXPECT_LT(far.statistics, 0.05);
  EXPECT_LT(far.gradients, 0.5);
  EXPECT_GT(far.output, 1e-5) << "it was not bfloat16";
}

TEST(CudaProgram, LeavesFrozenLayersAlone) {
  const Graph graph = narrow_resnet("layer2");
  ThreadPool threads(1);
  const auto values = draw_network_values(graph, 4);
  const auto expected =
      run_network(*make_reference_backend(), threads, graph, Precision::kFloat32, values);
  const auto actual =
      run_network(*cuda::testing::make_host_backend(), threads, graph, Precision::kFloat32, values);
  EXPECT_LT(relative_distance(actual.output, expected.output), 1e-5);
  EXPECT_LT(relative_distance(actual.gradients, expected.gradients), 1e-3);
  for (const Parameter& parameter : graph.parameters()) {
    const auto begin = actual.gradients.begin() + parameter.range.offset;
    const bool zero =
        std::all_of(begin, begin + parameter.range.size, [](float g) { return g == 0; });
    EXPECT_EQ(zero, !parameter.trainable) << parameter.name;
  }
}

class EveryModelOfCuda : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryModelOfCuda, CompilesWithEveryLayer) {
  ModelOptions options{.name = GetParam(), .classes = 10};
  if (GetParam() == "lenet5") options.height = options.width = 28;
  if (GetParam() == "mobilefacenet" || GetParam() == "iresnet50") options.head = HeadKind::kArcFace;
  const Graph graph = build_model(options);
  const auto engine = cuda::testing::make_host_engine();
  for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
    const cuda::CudaProgram program(graph, {.segment = graph.whole(), .batch = 2, .mode = mode},
                                    engine);
    const size_t alone = static_cast<size_t>(graph.size()) + 1;  // a step a layer, and the output
    EXPECT_LT(program.steps(), alone) << "norms and convolutions take in what follows";
    EXPECT_EQ(program.tape_bytes() > 0, mode == Mode::kTraining);
    EXPECT_GT(program.scratch_bytes(), 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, EveryModelOfCuda, ::testing::ValuesIn(model_names()));

// y = norm(x) + x: the addition joins the norm, and both write one gradient.
TEST(CudaProgram, AddsTheGradientsOfANormAndItsOwnInput) {
  GraphBuilder builder("loop", {4, 4, 3});
  builder.add("normalize", Normalize{{0.5f, 0.5f, 0.5f}, {0.25f, 0.25f, 0.25f}});
  const int convolution = builder.add("conv", Convolution{8, 3, 1, 1});
  const int first = builder.add("bn1", BatchNorm{}, {convolution});
  builder.add("bn2", BatchNorm{}, {first});
  builder.add("add", Add{}, {3, first});
  builder.add("relu", Relu{});
  builder.add("pool", GlobalAveragePool{});
  builder.add("fc", Linear{5});
  const Distances far = distances(builder.build(), Precision::kFloat32, {});
  EXPECT_LT(far.output, 1e-5);
  EXPECT_LT(far.gradients, 1e-3);
}

TEST(CudaProgram, RefusesWhatCannotBeCountedIn31Bits) {
  const Graph graph = narrow_resnet();
  const auto engine = cuda::testing::make_host_engine();
  try {
    const cuda::CudaProgram program(graph, {.segment = graph.whole(), .batch = 1'000'000}, engine);
    FAIL() << "it compiled";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("training.microBatchSize 524287 at most"),
              std::string::npos)
        << error.what();
  }
}

TEST(BufferPlan, KeepsOnTheTapeWhatBackwardNeedsToo) {
  cuda::BufferPlan plan;
  const auto forward_only = plan.add(1000);
  plan.use(forward_only, 0);
  plan.use(forward_only, 1);
  const auto kept = plan.add(500);
  plan.use(kept, 1);
  plan.use(kept, 3);
  const auto backward_only = plan.add(700);
  plan.use(backward_only, 2);
  plan.finish(1);
  EXPECT_EQ(plan.tape_bytes(), 512u);
  EXPECT_EQ(plan.scratch_bytes(), 1024u) << "forward's and backward's share a place";
  std::byte tape{}, scratch{};
  EXPECT_EQ(plan.address(kept, 2, &tape, &scratch), &tape);
  EXPECT_EQ(plan.address(forward_only, 1, &tape, &scratch), &scratch);
}

TEST(BufferPlanDeathTest, AbortsWhereABufferIsUsedOutOfItsTime) {
  cuda::BufferPlan plan;
  const auto buffer = plan.add(1000);
  plan.use(buffer, 0);
  plan.finish(1);
  std::byte tape{}, scratch{};
  EXPECT_DEATH(static_cast<void>(plan.address(buffer, 1, &tape, &scratch)), "planned to be there");
}

}  // namespace
}  // namespace outrigger::nn
