#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "host_engine.h"
#include "network_run.h"
#include "nn/cuda/program.h"
#include "nn/models.h"
#include "nn/reference/backend.h"

/// Programs whose library does more than a convolution at once.
namespace outrigger::nn {
namespace {

using cuda::testing::HostPlans;
using testing::draw_network_values;
using testing::narrow_resnet;
using testing::NetworkResult;
using testing::relative_distance;

Graph small_lenet() {
  return build_model({.name = "lenet5", .height = 28, .width = 28, .classes = 10});
}

NetworkResult run_with(HostPlans plans, const Graph& graph, Precision precision,
                       const std::vector<int>& cuts = {}) {
  ThreadPool threads(1);
  const auto backend = cuda::testing::make_host_backend(nullptr, false, plans);
  return testing::run_network(*backend, threads, graph, precision, draw_network_values(graph, 4),
                              cuts);
}

TEST(FusedConvolution, GivesLenetWhatTheReferenceGives) {
  const Graph graph = small_lenet();
  ThreadPool threads(1);
  const NetworkResult expected = run_network(*make_reference_backend(), threads, graph,
                                             Precision::kFloat32, draw_network_values(graph, 4));
  for (const HostPlans plans : {HostPlans::kNone, HostPlans::kForward}) {
    const NetworkResult actual = run_with(plans, graph, Precision::kFloat32);
    EXPECT_LT(relative_distance(actual.output, expected.output), 1e-5);
    EXPECT_LT(relative_distance(actual.gradients, expected.gradients), 1e-3);
    const NetworkResult cut =
        run_with(plans, graph, Precision::kFloat32, {graph.cut("pool1").layers});
    EXPECT_EQ(cut, actual);
  }
}

// Sums of what was rounded are as near as those of measuring it anew.
TEST(FusedConvolution, GivesStatisticsAsNearAsMeasuringThem) {
  const Graph graph = narrow_resnet();
  const NetworkResult measured = run_with(HostPlans::kNone, graph, Precision::kFloat16);
  const NetworkResult summed = run_with(HostPlans::kForward, graph, Precision::kFloat16);
  EXPECT_NE(summed.statistics, measured.statistics);
  EXPECT_LT(relative_distance(summed.statistics, measured.statistics), 1e-3);
  EXPECT_LT(relative_distance(summed.output, measured.output), 1e-2);
  EXPECT_LT(relative_distance(summed.gradients, measured.gradients), 1e-1);
  EXPECT_EQ(run_with(HostPlans::kForward, graph, Precision::kFloat16,
                     {graph.cut("layer1").layers, graph.cut("layer2").layers}),
            summed);
}

int64_t asked_for(cuda::Epilogue epilogue, const Graph& graph, const ProgramOptions& options) {
  int64_t asked = 0;
  const auto engine = cuda::testing::make_host_engine(
      [&](const cuda::ConvolutionRequest& request) { asked += request.epilogue == epilogue; });
  const cuda::CudaProgram program(graph, options, engine);
  return asked;
}

TEST(FusedConvolution, SumsWhereANormMeasuresOneMicroBatch) {
  const auto asked = [](ProgramOptions options, const Graph& graph = narrow_resnet()) {
    options.segment = graph.whole();
    options.batch = 4;
    return asked_for(cuda::Epilogue::kStatistics, graph, options);
  };
  constexpr Precision kHalf = Precision::kFloat16;
  EXPECT_EQ(asked({.precision = kHalf}), 9);
  EXPECT_EQ(asked({.precision = Precision::kBFloat16}), 0);
  EXPECT_EQ(asked({.precision = Precision::kFloat32}), 0);
  EXPECT_EQ(asked({.precision = kHalf, .groups = 2}), 0);
  EXPECT_EQ(asked({.precision = kHalf, .mode = Mode::kInference}), 0);
  EXPECT_EQ(asked({.precision = kHalf}, narrow_resnet("layer1")), 6)
      << "what is frozen has averages";
}

TEST(FusedConvolution, TakesTheReluThatAloneReadsIt) {
  const Graph graph = small_lenet();
  const ProgramOptions options{.segment = graph.whole(), .batch = 4};
  EXPECT_EQ(asked_for(cuda::Epilogue::kBiasRelu, graph, options), 2);
  EXPECT_EQ(asked_for(cuda::Epilogue::kBias, graph, options), 0);
}

TEST(FusedConvolution, KeepsNoMoreMemory) {
  for (const Graph& graph : {small_lenet(), narrow_resnet()}) {
    const auto compile = [&](HostPlans plans) {
      return cuda::CudaProgram(
          graph, {.segment = graph.whole(), .batch = 64, .precision = Precision::kFloat16},
          cuda::testing::make_host_engine({}, SIZE_MAX, plans));
    };
    const cuda::CudaProgram fused = compile(HostPlans::kForward), apart = compile(HostPlans::kNone);
    EXPECT_EQ(fused.tape_bytes(), apart.tape_bytes());
    EXPECT_EQ(fused.scratch_bytes(), apart.scratch_bytes());
  }
}

}  // namespace
}  // namespace outrigger::nn
