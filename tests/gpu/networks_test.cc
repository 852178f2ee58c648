#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "../unit/nn/cpu/network_run.h"
#include "gpu.h"
#include "nn/cpu/backend.h"
#include "nn/cuda/errors.h"
#include "nn/loss.h"
#include "nn/models.h"
#include "nn/optimizer.h"
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

// The losses of some steps of plain gradient descent on one batch.
std::vector<double> losses(const Backend& backend, const Graph& graph, int steps) {
  constexpr int64_t kBatch = 16;
  ThreadPool threads(available_cores());
  auto values = draw_network_values(graph, kBatch);
  const auto program =
      backend.compile(graph, {.segment = graph.whole(), .batch = kBatch, .seed = 5}, threads);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  Tensor logits(ElementType::kFloat32, program->output_spec().shape);
  Tensor gradient(ElementType::kFloat32, program->output_spec().shape);
  std::vector<float> gradients(values.parameters.size()), momentum(values.parameters.size());
  std::vector<float> statistics(values.buffers.size());
  std::vector<double> result;
  for (int step = 0; step < steps; ++step) {
    program->load(*weights, values.parameters, values.buffers);
    program->forward(*weights, *tape,
                     {{ElementType::kUint8, program->input_spec().shape,
                       reinterpret_cast<const std::byte*>(values.pixels.data())},
                      kBatch,
                      values.slots,
                      values.labels},
                     {logits.view(), statistics});
    const auto loss = softmax_cross_entropy(logits.view(), values.labels, 0, gradient.view());
    result.push_back(loss.loss_sum / kBatch);
    program->backward(*weights, *tape, gradient.view(), {{}, gradients});
    for (float& value : gradients) value /= kBatch;
    sgd_step(graph, {.momentum = 0.9f}, 0.01f, gradients, momentum, values.parameters);
    update_running_averages(graph, graph.whole(), kBatch, statistics, values.buffers);
  }
  return result;
}

class ModelOnGpu : public testing::OnGpu, public ::testing::WithParamInterface<std::string> {};

// TF32 is off, so only the order of sums differs.
TEST_P(ModelOnGpu, TrainsTwentyStepsAsTheCpu) {
  ModelOptions options{.name = GetParam(), .classes = 10};
  if (GetParam() != "resnet18") options.head = HeadKind::kArcFace;
  const Graph graph = build_model(options);
  const auto expected = losses(*cpu::make_cpu_backend(), graph, 20);
  const auto actual = losses(*gpu().backend, graph, 20);
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], 1e-3 * std::max(1.0, expected[step])) << step;
}
INSTANTIATE_TEST_SUITE_P(Models, ModelOnGpu,
                         ::testing::Values("resnet18", "iresnet50", "mobilefacenet"));

}  // namespace
}  // namespace outrigger::nn
