#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "../unit/nn/network_run.h"
#include "gpu.h"
#include "nn/cuda/errors.h"
#include "nn/models.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::gpu;
using testing::narrow_resnet;
using testing::relative_distance;
using testing::run_network;

class NetworkOnGpu : public testing::OnGpu {};

TEST_F(NetworkOnGpu, RunsAWholeNetworkAsTheReference) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(2);
  const auto values = draw_network_values(graph, 6);
  const auto expected =
      run_network(*make_reference_backend(), threads, graph, Precision::kFloat32, values);
  const auto actual = run_network(*gpu().backend, threads, graph, Precision::kFloat32, values);
  EXPECT_LT(relative_distance(actual.output, expected.output), 1e-5);
  EXPECT_LT(relative_distance(actual.statistics, expected.statistics), 1e-5);
  EXPECT_LT(relative_distance(actual.gradients, expected.gradients), 1e-3);
}

TEST_F(NetworkOnGpu, InBFloat16IsAsNearAsItsDigits) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(2);
  const auto values = draw_network_values(graph, 6);
  const auto expected =
      run_network(*make_reference_backend(), threads, graph, Precision::kFloat32, values);
  const auto actual = run_network(*gpu().backend, threads, graph, Precision::kBFloat16, values,
                                  {graph.cut("layer1").layers});
  EXPECT_LT(relative_distance(actual.output, expected.output), 0.05);
  EXPECT_LT(relative_distance(actual.gradients, expected.gradients), 0.5);
}

// lenet5 has biases and ReLUs, the other one norms; in float16 both are done beside convolutions.
TEST_F(NetworkOnGpu, DoesMoreThanAConvolutionAtOnce) {
  const Graph lenet = build_model({.name = "lenet5", .height = 28, .width = 28, .classes = 10});
  ThreadPool threads(2);
  for (const Graph& graph : {lenet, narrow_resnet()}) {
    const auto values = draw_network_values(graph, 8);
    const auto expected =
        run_network(*make_reference_backend(), threads, graph, Precision::kFloat32, values);
    const auto exact = run_network(*gpu().backend, threads, graph, Precision::kFloat32, values);
    EXPECT_LT(relative_distance(exact.output, expected.output), 1e-5);
    EXPECT_LT(relative_distance(exact.gradients, expected.gradients), 1e-3);
    const auto half = run_network(*gpu().backend, threads, graph, Precision::kFloat16, values);
    EXPECT_LT(relative_distance(half.output, expected.output), 0.01);
    EXPECT_LT(relative_distance(half.statistics, expected.statistics), 0.01);
    EXPECT_LT(relative_distance(half.gradients, expected.gradients), 0.2);
    EXPECT_EQ(run_network(*gpu().backend, threads, graph, Precision::kFloat16, values), half);
  }
}

TEST_F(NetworkOnGpu, GivesTheSameCutOrWhole) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(2);
  const auto values = draw_network_values(graph, 6);
  const auto whole = run_network(*gpu().backend, threads, graph, Precision::kFloat32, values);
  const auto cut = run_network(*gpu().backend, threads, graph, Precision::kFloat32, values,
                               {graph.cut("maxpool").layers, graph.cut("layer2").layers});
  EXPECT_EQ(cut, whole);
}

TEST_F(NetworkOnGpu, SaysWhatWouldFitWhereItsMemoryIsTooSmall) {
  const Graph graph = build_model({.name = "resnet50", .height = 224, .width = 224, .classes = 10});
  ThreadPool threads(1);
  // 2^31 values are the most of one layer, so several tapes are what fills a large device.
  const auto program = gpu().backend->compile(
      graph, {.segment = graph.whole(), .batch = 2048, .precision = Precision::kFloat32}, threads);
  std::vector<std::unique_ptr<Tape>> tapes;
  try {
    for (int i = 0; i < 64; ++i) tapes.push_back(program->new_tape());
    FAIL() << "64 tapes of 2048 images fit";
  } catch (const cuda::OutOfDeviceMemory& error) {
    EXPECT_NE(std::string(error.what()).find("a micro-batch of 2048 keeps"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace outrigger::nn
