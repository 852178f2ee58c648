#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "common/error.h"
#include "common/random.h"
#include "network_run.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/fingerprint.h"
#include "nn/graph_builder.h"
#include "nn/models.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

using testing::relative_distance;

// One program with values to run it on.
struct Bench {
  Bench(const Backend& backend, const Graph& graph, const ProgramOptions& options, int pool = 2)
      : values(testing::draw_network_values(graph, options.batch)),
        threads(pool),
        program(backend.compile(graph, options, threads)),
        weights(program->new_weights()),
        tape(program->new_tape()),
        output(program->output_spec().type, program->output_spec().shape),
        statistics(values.buffers.size(), -1.0f) {
    program->load(*weights, values.parameters, values.buffers);
  }
  std::vector<float> forward(int64_t count, Tape& on) {
    program->forward(*weights, on, testing::input_of(*program, values, count),
                     {output.view(), statistics});
    const auto all = output.as<float>();
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count * output.view().shape[1])};
  }
  std::vector<float> backward(Tape& on) {
    std::vector<float> gradients(values.parameters.size(), -1.0f);
    program->backward(*weights, on,
                      {ElementType::kFloat32, program->output_spec().shape,
                       reinterpret_cast<const std::byte*>(values.output_gradient.data())},
                      {{}, gradients});
    return gradients;
  }
  testing::NetworkValues values;
  ThreadPool threads;
  std::unique_ptr<Program> program;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Tape> tape;
  Tensor output;
  std::vector<float> statistics;
};

TEST(CpuProgram, EvaluatesAPartOfABatchAsItEvaluatesTheWhole) {
  const Graph graph = testing::narrow_resnet();
  const ProgramOptions options{.segment = graph.whole(), .batch = 10, .mode = Mode::kInference};
  Bench bench(*cpu::make_cpu_backend(), graph, options);
  const auto all = bench.forward(10, *bench.tape);
  for (const int64_t count : {1, 3, 4, 9}) {
    const auto some = bench.forward(count, *bench.tape);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << count << " samples";
  }
  Bench reference(*make_reference_backend(), graph, options);
  EXPECT_LT(relative_distance(all, reference.forward(10, *reference.tape)), 1e-5);
}

TEST(CpuProgram, EvaluatesALargeLinearLayerBehindADropout) {
  GraphBuilder builder("dropout", {8, 8, 16});
  builder.add("normalize", Normalize{std::vector<float>(16, 0.5f), std::vector<float>(16, 0.5f)});
  builder.add("flatten", Flatten{});
  builder.add("dropout", Dropout{0.5f});
  // Weights that are read once for all samples, which lie side by side for that.
  builder.add("fc", Linear{.out_features = 128});
  const Graph graph = builder.build();
  const ProgramOptions options{.segment = graph.whole(), .batch = 10, .mode = Mode::kInference};
  Bench bench(*cpu::make_cpu_backend(), graph, options);
  Bench reference(*make_reference_backend(), graph, options);
  EXPECT_LT(
      relative_distance(bench.forward(10, *bench.tape), reference.forward(10, *reference.tape)),
      1e-5);
}

TEST(CpuProgram, AddsUpTheGradientsOfMoreThanAThousandBlocks) {
  GraphBuilder builder("blocks", {23, 23, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.5f}});
  builder.add("conv", Convolution{.out_channels = 1, .kernel = 1});
  builder.add("pool", GlobalAveragePool{});
  builder.add("fc", Linear{.out_features = 2});
  const Graph graph = builder.build();
  const ProgramOptions options{.segment = graph.whole(), .batch = 16 * 1030};
  Bench bench(*cpu::make_cpu_backend(), graph, options);
  Bench reference(*make_reference_backend(), graph, options);
  bench.forward(options.batch, *bench.tape);
  reference.forward(options.batch, *reference.tape);
  EXPECT_LT(relative_distance(bench.backward(*bench.tape), reference.backward(*reference.tape)),
            1e-3);
}

TEST(CpuProgram, KeepsMicroBatchesInFlightApart) {
  const Graph graph = testing::narrow_resnet();
  Bench bench(*cpu::make_cpu_backend(), graph, {.segment = graph.whole(), .batch = 6});
  bench.forward(6, *bench.tape);
  const auto alone = bench.backward(*bench.tape);
  const auto second = bench.program->new_tape();
  bench.forward(6, *bench.tape);
  std::reverse(bench.values.pixels.begin(), bench.values.pixels.end());
  bench.forward(6, *second);
  const auto other = bench.backward(*second);
  EXPECT_EQ(bench.backward(*bench.tape), alone);
  EXPECT_NE(other, alone);
}

TEST(CpuProgram, ATapeMayBeInTheMemoryOfAnotherPrograms) {
  const Graph graph = testing::narrow_resnet();
  const auto backend = cpu::make_cpu_backend();
  Bench bench(*backend, graph, {.segment = graph.whole(), .batch = 6});
  bench.forward(6, *bench.tape);
  const auto alone = bench.backward(*bench.tape);
  for (const int64_t batch : {2, 60, 600}) {
    Bench other(*backend, graph, {.segment = graph.whole(), .batch = batch});
    other.forward(batch, *other.tape);
    const auto tape = bench.program->new_tape_in(std::move(other.tape));
    bench.forward(6, *tape);
    EXPECT_EQ(bench.backward(*tape), alone) << batch;
  }
}

TEST(CpuProgram, ServesSeveralThreadsAtOnce) {
  const Graph graph = testing::narrow_resnet();
  Bench bench(*cpu::make_cpu_backend(), graph, {.segment = graph.whole(), .batch = 4});
  const auto expected = bench.forward(4, *bench.tape);
  const auto run = [&] {
    const auto tape = bench.program->new_tape();
    Tensor output(ElementType::kFloat32, bench.program->output_spec().shape);
    std::vector<float> statistics(bench.values.buffers.size());
    for (int i = 0; i < 3; ++i) {
      bench.program->forward(*bench.weights, *tape, testing::input_of(*bench.program, bench.values),
                             {output.view(), statistics});
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.as<float>().begin()));
    }
  };
  std::jthread first(run), second(run);
}

TEST(CpuProgram, LeavesFrozenLayersAlone) {
  const Graph graph = testing::narrow_resnet("layer2");
  const ProgramOptions options{.segment = graph.whole(), .batch = 6};
  Bench bench(*cpu::make_cpu_backend(), graph, options);
  Bench reference(*make_reference_backend(), graph, options);
  EXPECT_LT(relative_distance(bench.forward(6, *bench.tape), reference.forward(6, *reference.tape)),
            1e-5);
  const auto gradients = bench.backward(*bench.tape);
  EXPECT_LT(relative_distance(gradients, reference.backward(*reference.tape)), 1e-3);
  for (const Parameter& parameter : graph.parameters()) {
    const auto begin = gradients.begin() + parameter.range.offset;
    const bool zero =
        std::all_of(begin, begin + parameter.range.size, [](float g) { return g == 0; });
    EXPECT_EQ(zero, !parameter.trainable) << parameter.name;
  }
  for (const NormBuffer& buffer : graph.buffers()) {
    const bool frozen = graph.layers()[static_cast<size_t>(buffer.layer)].frozen;
    EXPECT_EQ(bench.statistics[static_cast<size_t>(buffer.range.offset)] == -1.0f, frozen)
        << buffer.name;
  }
}

// A head whose first layers are frozen, run on made-up activations.
std::vector<float> input_gradient_of_head(const Backend& backend, const Graph& graph, int cut) {
  const auto values = testing::draw_network_values(graph, 4);
  ThreadPool threads(2);
  const Segment head{cut, graph.size()};
  const auto program =
      backend.compile(graph, {.segment = head, .batch = 4, .input_gradient = true}, threads);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  const Range parameters = graph.parameter_range(head), buffers = graph.buffer_range(head);
  program->load(*weights,
                std::span(values.parameters).subspan(static_cast<size_t>(parameters.offset)),
                std::span(values.buffers).subspan(static_cast<size_t>(buffers.offset)));
  Tensor input(ElementType::kFloat32, program->input_spec().shape);
  RandomStream random(7, RandomUse::kSyntheticData, 0);
  for (float& value : input.as<float>()) value = random.normal();
  Tensor output(ElementType::kFloat32, program->output_spec().shape);
  std::vector<float> statistics(static_cast<size_t>(buffers.size));
  std::vector<float> gradients(static_cast<size_t>(parameters.size));
  std::vector<float> input_gradient(input.as<float>().size());
  program->forward(*weights, *tape, {input.view(), 4, values.slots, values.labels},
                   {output.view(), statistics});
  program->backward(*weights, *tape,
                    {ElementType::kFloat32, program->output_spec().shape,
                     reinterpret_cast<const std::byte*>(values.output_gradient.data())},
                    {{ElementType::kFloat32, program->input_spec().shape,
                      reinterpret_cast<std::byte*>(input_gradient.data())},
                     gradients});
  return input_gradient;
}

TEST(CpuProgram, GivesTheInputsGradientThroughFrozenLayers) {
  const Graph graph = testing::narrow_resnet("layer2");
  const int cut = graph.cut("layer1").layers;
  const auto actual = input_gradient_of_head(*cpu::make_cpu_backend(), graph, cut);
  const auto expected = input_gradient_of_head(*make_reference_backend(), graph, cut);
  EXPECT_LT(relative_distance(actual, expected), 1e-3);
  EXPECT_GT(relative_distance(std::vector<float>(actual.size()), expected), 0.9) << "not all zero";
}

TEST(CpuProgram, HidesNoNan) {
  const Graph graph = testing::narrow_resnet();
  Bench bench(*cpu::make_cpu_backend(), graph, {.segment = graph.whole(), .batch = 4});
  bench.values.parameters[0] = std::numeric_limits<float>::quiet_NaN();
  bench.program->load(*bench.weights, bench.values.parameters, bench.values.buffers);
  for (const float value : bench.forward(4, *bench.tape)) EXPECT_TRUE(std::isnan(value));
}

TEST(CpuProgram, TimesOnePassOfManyByLayer) {
  const Graph graph = testing::narrow_resnet();
  Bench bench(*cpu::make_cpu_backend(), graph,
              {.segment = graph.whole(), .batch = 6, .time_layers = true});
  bench.forward(6, *bench.tape);
  EXPECT_TRUE(bench.program->take_layer_seconds().empty()) << "the first is cold";
  bench.forward(6, *bench.tape);
  auto layers = bench.program->take_layer_seconds();
  ASSERT_EQ(layers.size(), static_cast<size_t>(graph.size()));
  const auto sum = [&](auto member) {
    float all = 0;
    for (const LayerSeconds& layer : layers) all += layer.*member;
    return all;
  };
  EXPECT_GT(sum(&LayerSeconds::forward), 0);
  EXPECT_EQ(sum(&LayerSeconds::backward), 0) << "there was none";
  bench.backward(*bench.tape);
  bench.backward(*bench.tape);
  layers = bench.program->take_layer_seconds();
  EXPECT_GT(sum(&LayerSeconds::backward), 0);
  EXPECT_EQ(sum(&LayerSeconds::forward), 0) << "of passes since the last call";
}

TEST(CpuProfile, ListsEveryLayerOfTheSegment) {
  const Graph graph = testing::narrow_resnet();
  ThreadPool threads(1);
  const Segment stem{0, graph.cut("layer1").layers};
  const auto costs = cpu::profile(graph, {.segment = stem, .batch = 4}, threads, 2);
  ASSERT_EQ(costs.size(), static_cast<size_t>(stem.end));
  EXPECT_EQ(costs[1].layer, "conv1");
  EXPECT_GT(costs[1].forward_seconds, 0);
  EXPECT_GT(costs[1].backward_seconds, 0);
}

std::string fingerprint_of(const Graph& graph, int cut, int64_t batch, Precision precision,
                           ThreadPool& threads) {
  return cpu::measure_numerics(graph, cut, batch, precision, threads).fingerprint;
}

TEST(Fingerprint, IsTheSameForAnyThreadsAndTellsNetworksApart) {
  const Graph graph = testing::narrow_resnet();
  ThreadPool one(1), three(3);
  const int cut = graph.cut("layer1").layers;
  const auto print = fingerprint_of(graph, cut, 6, Precision::kFloat32, one);
  EXPECT_EQ(print.size(), 64u);
  EXPECT_EQ(print, fingerprint_of(graph, cut, 6, Precision::kFloat32, three));
  EXPECT_NE(print, fingerprint_of(graph, graph.cut("layer2").layers, 6, Precision::kFloat32, one));
  EXPECT_NE(print, fingerprint_of(graph, cut, 5, Precision::kFloat32, one));
  EXPECT_EQ(fingerprint_of(graph, 0, 6, Precision::kFloat32, one), "");
  const auto layers = cpu::measure_numerics(graph, cut, 6, Precision::kFloat32, one).layers;
  ASSERT_EQ(layers.size(), static_cast<size_t>(cut));
  EXPECT_GT(layers[1].forward, 0);
  EXPECT_GT(layers[1].backward, 0);
}

TEST(Fingerprint, TakesNothingForTheLayersBehindTheCut) {
  constexpr int64_t kTooMany = 1'000'000'000'000;  // their weights fit into no memory
  ThreadPool threads(1);
  const auto print_with = [&](int64_t classes) {
    const Graph graph = build_model(
        {.name = "lenet5", .height = 28, .width = 28, .channels = 1, .classes = classes});
    return fingerprint_of(graph, graph.cut("pool1").layers, 2, Precision::kFloat32, threads);
  };
  EXPECT_EQ(print_with(kTooMany), print_with(10));
}

TEST(Fingerprint, EndsBeforeTheNextPassWhenAskedToStop) {
  const Graph graph = testing::narrow_resnet();
  ThreadPool threads(1);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(cpu::measure_numerics(graph, graph.cut("layer1").layers, 6, Precision::kFloat32,
                                     threads, stop.get_token()),
               Cancelled);
}

}  // namespace
}  // namespace outrigger::nn
