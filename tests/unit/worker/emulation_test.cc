#include "worker/work/emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "common/error.h"
#include "common/file.h"
#include "common/thread_pool.h"
#include "nn/graph_builder.h"

namespace outrigger::worker {
namespace {

using testing::HasSubstr;

nn::Graph small_graph() {
  nn::GraphBuilder builder("small", {4, 4, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 2, .kernel = 3, .padding = 1});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  return builder.build();
}

EmulatedTimes times_of(const nn::Graph& graph) {
  EmulatedTimes times{.decode = 0.002, .micro_batch = 2};
  for (const nn::Layer& layer : graph.layers()) times.layers.push_back({layer.name, 0.001, 0.002});
  return times;
}

std::string message_of(const std::string& profile) {
  const TemporaryDirectory folder("emulation");
  const auto file = folder.path() / "profile.json";
  write_file_atomically(file, profile);
  try {
    static_cast<void>(read_emulated_times(file));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Emulation, ReadsWhatPlanWrites) {
  const TemporaryDirectory folder("emulation");
  const auto file = folder.path() / "profile.json";
  write_file_atomically(file, R"({"profile": {"microBatch": 8, "decode": 0.5, "layers": [
      {"name": "conv1", "forward": 0.1, "backward": 0.2}, {"name": "fc", "forward": 1, "backward": 2}]}})");
  const EmulatedTimes times = read_emulated_times(file);
  EXPECT_EQ(times.micro_batch, 8);
  EXPECT_DOUBLE_EQ(times.decode, 0.5);
  EXPECT_DOUBLE_EQ(times.pass_seconds(1), 0.3);
  EXPECT_DOUBLE_EQ(times.pass_seconds(9), 3.3);
}

TEST(Emulation, SaysWhatIsWrongInAProfile) {
  EXPECT_THAT(message_of("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(message_of("{}"), HasSubstr("profile.layers: a list is needed"));
  EXPECT_THAT(message_of(R"({"layers": [3]})"), HasSubstr("layers[0].name"));
  EXPECT_THAT(message_of(R"({"layers": [{"name": "a", "forward": -1, "backward": 0}]})"),
              HasSubstr("layers[0].forward: a number from 0"));
  EXPECT_THAT(message_of(R"({"layers": [{"name": "a", "forward": 1, "backward": 0}], "decode": 1,
                             "microBatch": 0.5})"),
              HasSubstr("microBatch: a whole number"));
}

TEST(Emulation, ProgramsGiveZerosOfTheRightShapes) {
  const nn::Graph graph = small_graph();
  ThreadPool threads{1};
  Pace pace(1000);
  const auto backend = make_emulated_cores(times_of(graph), pace);
  const auto program = backend->compile(
      graph, {.segment = graph.whole(), .batch = 2, .input_gradient = false}, threads);
  EXPECT_EQ(program->input_spec().shape, (Shape{2, 4, 4, 1}));
  EXPECT_EQ(program->output_spec().shape, (Shape{2, 3}));
  Tensor pixels(ElementType::kUint8, {2, 4, 4, 1});
  Tensor logits(ElementType::kFloat32, {2, 3});
  std::ranges::fill(logits.as<float>(), 5.0f);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  program->forward(*weights, *tape, {pixels.view(), 2, {}, {}}, {logits.view(), {}});
  EXPECT_THAT(logits.as<float>(), testing::Each(0.0f));
}

TEST(Emulation, RefusesTheProfileOfAnotherJob) {
  const nn::Graph graph = small_graph();
  ThreadPool threads{1};
  Pace pace(1);
  EmulatedTimes other = times_of(graph);
  other.layers[1].name = "conv9";
  EXPECT_THROW(make_emulated_cores(other, pace)
                   ->compile(graph, {.segment = graph.whole(), .batch = 2}, threads),
               InvalidInput);
  EXPECT_THROW(make_emulated_cores(times_of(graph), pace)
                   ->compile(graph, {.segment = graph.whole(), .batch = 4}, threads),
               InvalidInput);
}

/// Of a machine with a GPU, which has the layers of stems only.
EmulatedTimes gpu_times_of(const nn::Graph& graph) {
  EmulatedTimes times = times_of(graph);
  times.layers.resize(2);
  times.cuts = {{.layers = 0, .head = 0.006}, {.layers = 2, .head = 0.003, .stem = 0.002}};
  return times;
}

TEST(Emulation, OfAGpuTakesTheDevicesTimesThereAndTheCoresOnWorkers) {
  const nn::Graph graph = small_graph();
  const EmulatedTimes times = gpu_times_of(graph);
  const auto sum = [](const EmulatedTimes::Pass& pass) { return pass.forward + pass.backward; };
  EXPECT_DOUBLE_EQ(sum(times.on_device({0, 4}, graph)), 0.006);
  EXPECT_DOUBLE_EQ(sum(times.on_device({2, 4}, graph)), 0.003);
  EXPECT_DOUBLE_EQ(sum(times.on_device({0, 2}, graph)), 0.002);
  EXPECT_DOUBLE_EQ(sum(times.on_cores({0, 2}, graph)), 0.006);
  const auto madds = [&](nn::Segment segment) {
    return static_cast<double>(graph.multiply_adds(segment));
  };
  EXPECT_DOUBLE_EQ(times.on_cores({0, 4}, graph).forward,
                   0.002 * (1 + madds({2, 4}) / madds({0, 2})))
      << "what was not measured is reckoned";
  EXPECT_THROW(static_cast<void>(times.on_device({3, 4}, graph)), InvalidInput) << "no such cut";
  EmulatedTimes other = times;
  other.layers[1].name = "conv2";
  EXPECT_THROW(other.check(graph), InvalidInput);
}

TEST(Emulation, ReadsWhatPlanWritesOfAGpu) {
  const TemporaryDirectory folder("emulation");
  const auto file = folder.path() / "profile.json";
  write_file_atomically(file, R"({"microBatch": 8, "decode": 0.5, "layers": [
      {"name": "conv1", "forward": 0.1, "backward": 0.2}], "cuts": [
      {"layers": 0, "head": 0.04, "deviceStem": 0}, {"layers": 1, "head": 0.03, "deviceStem": 0.01}]})");
  const EmulatedTimes times = read_emulated_times(file);
  ASSERT_TRUE(times.of_gpu());
  EXPECT_DOUBLE_EQ(times.cuts[1].head, 0.03);
  EXPECT_DOUBLE_EQ(times.cuts[1].stem, 0.01);
  EXPECT_THAT(message_of(R"({"microBatch": 8, "decode": 0.5, "layers": [
      {"name": "conv1", "forward": 0.1, "backward": 0.2}], "cuts": [
      {"layers": 1, "head": 0.04, "deviceStem": 0}]})"),
              HasSubstr("profile.cuts[0].layers: 0 is needed"));
}

TEST(Emulation, TakesItsTime) {
  Pace pace(2);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) pace.work(0.004);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
}

TEST(Emulation, PixelsTellSampleAndSlot) {
  Pace pace(1000);
  EmulatedPixels pixels(times_of(small_graph()), pace);
  std::vector<std::byte> one(16);
  std::vector<std::byte> same(16);
  std::vector<std::byte> other(16);
  pixels.make({.slot = 3, .id = 5, .sample = {}}, false, one);
  pixels.make({.slot = 3, .id = 5, .sample = {}}, false, same);
  pixels.make({.slot = 4, .id = 5, .sample = {}}, false, other);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace outrigger::worker
