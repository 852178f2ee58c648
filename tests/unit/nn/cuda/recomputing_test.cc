#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "host_engine.h"
#include "network_run.h"
#include "nn/cuda/pass_plan.h"
#include "nn/cuda/program.h"
#include "nn/cuda/resident.h"
#include "nn/graph_builder.h"

/// Training programs that compute again what they did not keep.
namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::narrow_resnet;
using testing::NetworkValues;

/// All places where a segment may be divided.
std::vector<int> all_cuts(const Graph& graph, Segment segment) {
  std::vector<int> cuts;
  for (const Cut& cut : graph.cuts())
    if (cut.layers > segment.begin && cut.layers < segment.end) cuts.push_back(cut.layers);
  return cuts;
}

void add_narrow(GraphBuilder& builder, const std::string& name, int64_t channels, int64_t stride) {
  builder.add(name + ".up", Convolution{.out_channels = 2 * channels, .kernel = 1});
  builder.add(name + ".bn1", BatchNorm{});
  builder.add(name + ".prelu1", Prelu{});
  builder.add(name + ".deep", Convolution{.out_channels = 2 * channels,
                                          .kernel = 3,
                                          .stride = stride,
                                          .padding = 1,
                                          .groups = 2 * channels});
  builder.add(name + ".bn2", BatchNorm{});
  builder.add(name + ".prelu2", Prelu{});
  builder.add(name + ".down", Convolution{.out_channels = channels, .kernel = 1});
  builder.add(name + ".bn3", BatchNorm{});
}

/// A narrow network with all that mobilefacenet has, and ArcFace.
Graph narrow_face_net() {
  GraphBuilder builder("faces", {16, 16, 3});
  builder.add("normalize", Normalize{{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}});
  builder.add("conv", Convolution{.out_channels = 8, .kernel = 3, .stride = 2, .padding = 1});
  builder.add("bn", BatchNorm{});
  int last = builder.add("prelu", Prelu{});
  for (const int block : {1, 2}) {
    const std::string name = "block" + std::to_string(block);
    add_narrow(builder, name, 8, 1);
    const int main = builder.add(name + ".bn4", BatchNorm{});
    last = builder.add(name + ".add", Add{}, {last, main});
  }
  add_narrow(builder, "half", 12, 2);
  builder.add("whole", Convolution{.out_channels = 12, .kernel = 4, .groups = 12});
  builder.add("bn5", BatchNorm{});
  builder.add("flatten", Flatten{});
  builder.add("embedding", Linear{.out_features = 10, .bias = false});
  builder.add("bn6", BatchNorm{.train_scale = false});
  builder.add("arcface", ArcFace{.classes = 7, .scale = 8});
  return builder.build();
}

/// lenet5 with dropout where others have none, on maps and on features.
Graph dropping_lenet() {
  GraphBuilder builder("lenet", {12, 12, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.5f}});
  builder.add("conv1", Convolution{.out_channels = 4, .kernel = 5, .bias = true});
  builder.add("relu1", Relu{});
  builder.add("drop1", Dropout{0.3f});
  builder.add("pool1", MaxPool{});
  builder.add("conv2", Convolution{.out_channels = 6, .kernel = 3, .bias = true});
  builder.add("relu2", Relu{});
  builder.add("pool2", AveragePool{});
  builder.add("flatten", Flatten{});
  builder.add("fc1", Linear{12});
  builder.add("relu3", Relu{});
  builder.add("drop2", Dropout{0.5f});
  builder.add("fc2", Linear{5});
  return builder.build();
}

/// A segment that ends the graph, and how it is trained.
struct PassCase {
  Graph graph;
  int begin = 0;
  int64_t groups = 1;
  Precision precision = Precision::kFloat32;
  float loss_scale = 1;
  bool input_gradient = true;  // where it is cut
  int64_t batch = 2;
  cuda::testing::HostPlans plans = cuda::testing::HostPlans::kNone;
  // As it is, then recorded, then with another loss scale, whose recordings are new ones.
  std::vector<float> times_scale{1, 1, 1, 2};
};

/// What the passes told, and left on the device.
struct PassResult {
  std::vector<double> losses;
  std::vector<float> statistics, gradients, crossed;
  bool operator==(const PassResult&) const = default;
};

/// A program's sizes beside what it did.
struct PassRun {
  PassResult result;
  size_t tape = 0, weights = 0;
};

/// A micro-batch as it enters a segment.
struct Entering {
  Tensor maps;
  NetworkValues values;
  Entering(const Program& program, const Graph& graph, int64_t batch)
      : maps(program.input_spec().type, program.input_spec().shape),
        values(draw_network_values(graph, batch)) {
    if (program.input_spec().type == ElementType::kUint8) {
      std::memcpy(maps.view().data, values.pixels.data(), maps.bytes());
      return;
    }
    auto at = maps.as<float>();
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  }
  ForwardInput input() const { return {maps.view(), values.batch, values.slots, values.labels}; }
};

PassRun run_passes(const PassCase& of, const std::vector<int>& cuts) {
  const auto engine = cuda::testing::make_host_engine({}, SIZE_MAX, of.plans);
  const cuda::CudaProgram program(of.graph,
                                  {.segment = {of.begin, of.graph.size()},
                                   .batch = of.batch,
                                   .precision = of.precision,
                                   .input_gradient = of.begin > 0 && of.input_gradient,
                                   .seed = 5,
                                   .groups = of.groups},
                                  engine, cuts);
  Entering entering(program, of.graph, of.batch);
  NetworkValues& values = entering.values;
  cuda::CudaResident resident(of.graph, {{.momentum = 0.9f}, std::nullopt, 0.1f}, engine);
  std::vector<float> momentum(values.parameters.size());
  resident.put({values.parameters, momentum, {}});
  const auto weights = program.new_weights();
  const auto tape = program.new_tape();
  const Range buffers = of.graph.buffer_range({of.begin, of.graph.size()});
  resident.load(program, *weights, part_of(std::span<const float>(values.buffers), buffers));
  resident.clear_gradients();
  PassRun run;
  const ResidentPass pass{program, *weights, *tape};
  for (const float more : of.times_scale) {
    for (uint64_t& slot : values.slots) ++slot;
    std::rotate(values.labels.begin(), values.labels.begin() + 1, values.labels.end());
    std::vector<float> statistics(static_cast<size_t>(of.groups) * values.buffers.size());
    Tensor gradient(ElementType::kFloat32, program.input_spec().shape);
    const bool crosses = of.begin > 0 && of.input_gradient;
    const ForwardInput in = entering.input();
    resident.stage(pass, std::span(&in, 1));
    resident.train(pass, {statistics, crosses ? gradient.view() : TensorView{}},
                   more * of.loss_scale);
    run.result.losses.push_back(resident.collect().loss_sum);
    run.result.statistics.insert(run.result.statistics.end(), statistics.begin(), statistics.end());
    const auto crossed = gradient.as<float>();
    if (crosses)
      run.result.crossed.insert(run.result.crossed.end(), crossed.begin(), crossed.end());
  }
  run.result.gradients.resize(values.parameters.size());
  resident.fetch_gradients(run.result.gradients);
  run.tape = program.tape_bytes();
  run.weights = program.memory().weights;
  return run;
}

void expect_the_same(const PassCase& of) {
  const PassRun kept = run_passes(of, {});
  const Segment segment{of.begin, of.graph.size()};
  const auto all = all_cuts(of.graph, segment);
  ASSERT_FALSE(all.empty());
  const ProgramOptions options{.segment = segment,
                               .batch = of.batch,
                               .precision = of.precision,
                               .input_gradient = of.begin > 0 && of.input_gradient,
                               .groups = of.groups};
  for (const auto& cuts :
       {all, std::vector<int>{all[all.size() / 2]},
        cuda::choose_pieces(of.graph, options, *cuda::testing::make_host_engine())}) {
    const PassRun again = run_passes(of, cuts);
    EXPECT_EQ(again.result, kept.result) << cuts.size() + 1 << " pieces";
    EXPECT_EQ(again.weights, kept.weights);
    EXPECT_NE(again.tape, kept.tape) << "nothing was computed again";
  }
  EXPECT_TRUE(std::ranges::any_of(kept.result.gradients, [](float g) { return g != 0; }));
}

TEST(RecomputingPass, GivesAResidualNetworkTheSameBits) { expect_the_same({narrow_resnet()}); }

TEST(RecomputingPass, GivesFacesWithMarginsTheSameBits) { expect_the_same({narrow_face_net()}); }

TEST(RecomputingPass, DropsTheSameAgain) { expect_the_same({dropping_lenet()}); }

TEST(RecomputingPass, GivesTheSameGradientAtACut) {
  const Graph graph = narrow_face_net();
  expect_the_same({graph, graph.cut("block1").layers});
  expect_the_same({.graph = graph, .begin = graph.cut("block1").layers, .input_gradient = false});
}

TEST(RecomputingPass, MeasuresEachMicroBatchByItself) {
  expect_the_same({.graph = narrow_resnet(), .groups = 2, .batch = 4});
  const Graph graph = narrow_face_net();
  expect_the_same({.graph = graph, .begin = graph.cut("prelu").layers, .groups = 2, .batch = 4});
}

TEST(RecomputingPass, GivesFloat16WithALossScaleTheSameBits) {
  const Graph graph = narrow_resnet();
  expect_the_same({.graph = graph, .precision = Precision::kFloat16, .loss_scale = 256});
  expect_the_same({.graph = graph,
                   .begin = graph.cut("layer1").layers,
                   .precision = Precision::kFloat16,
                   .loss_scale = 256});
}

TEST(RecomputingPass, GivesBFloat16TheSameBits) {
  expect_the_same({.graph = narrow_face_net(), .precision = Precision::kBFloat16});
}

TEST(RecomputingPass, GivesFusedConvolutionsTheSameBits) {
  using cuda::testing::HostPlans;
  expect_the_same({.graph = dropping_lenet(), .plans = HostPlans::kForward});
  const Graph graph = narrow_resnet();
  expect_the_same({.graph = graph, .precision = Precision::kFloat16, .plans = HostPlans::kForward});
  expect_the_same({.graph = graph,
                   .begin = graph.cut("layer1").layers,
                   .precision = Precision::kFloat16,
                   .plans = HostPlans::kForward});
}

TEST(RecomputingPass, LeavesWhatIsFrozenAsItWas) {
  expect_the_same({narrow_resnet("layer1")});
  expect_the_same({narrow_resnet("layer2")});
}

// Gradients leave in two buckets, whose turns lie between pieces that run again.
TEST(RecomputingPass, FinishesEachBucketOfGradientsInItsTurn) {
  GraphBuilder builder("wide", {8, 8, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.5f}});
  builder.add("conv", Convolution{.out_channels = 8, .kernel = 3, .padding = 1});
  builder.add("bn", BatchNorm{});
  builder.add("relu", Relu{});
  builder.add("pool1", MaxPool{});
  builder.add("flatten", Flatten{});
  builder.add("fc1", Linear{.out_features = cuda::kBucketFloats / 128 + 1});
  builder.add("relu2", Relu{});
  builder.add("fc2", Linear{.out_features = 3});
  const Graph graph = builder.build();
  const PassCase wide{.graph = graph, .batch = 1, .times_scale = {1, 1}};
  EXPECT_EQ(run_passes(wide, {graph.cut("pool1").layers, graph.cut("relu2").layers}).result,
            run_passes(wide, {}).result);
}

/// A stem whose micro-batches wait for their gradients.
class WaitingStem {
 public:
  WaitingStem(const Graph& graph, const std::vector<int>& cuts)
      : program_(graph, {.segment = {0, graph.cut("pool2").layers}, .batch = 4, .seed = 5},
                 cuda::testing::make_host_engine(), cuts),
        weights_(program_.new_weights()),
        entering_(program_, graph, 4) {
    const Segment segment = program_.segment();
    parameters_ = graph.parameter_range(segment);
    program_.load(*weights_,
                  part_of(std::span<const float>(entering_.values.parameters), parameters_), {});
  }
  std::unique_ptr<Tape> new_tape() const { return program_.new_tape(); }
  std::vector<float> forward(Tape& tape, uint64_t first_slot) {
    for (uint64_t& slot : entering_.values.slots) slot = first_slot++;
    const TensorSpec spec = program_.output_spec();
    Tensor output(spec.type, spec.shape);
    program_.forward(*weights_, tape, entering_.input(), {output.view(), {}});
    const auto all = output.as<float>();
    return {all.begin(), all.end()};
  }
  std::vector<float> backward(Tape& tape) {
    const TensorSpec spec = program_.output_spec();
    Tensor gradient(spec.type, spec.shape);
    std::ranges::fill(gradient.as<float>(), 0.5f);
    std::vector<float> gradients(static_cast<size_t>(parameters_.size));
    program_.backward(*weights_, tape, gradient.view(), {{}, gradients});
    return gradients;
  }

 private:
  const cuda::CudaProgram program_;
  const std::unique_ptr<Weights> weights_;
  Entering entering_;
  Range parameters_;
};

TEST(RecomputingProgram, KeepsMicroBatchesApart) {
  const Graph graph = dropping_lenet();
  const std::vector<int> cuts{graph.cut("drop1").layers};
  WaitingStem kept(graph, {}), again(graph, cuts);
  std::vector<std::vector<float>> results[2];
  int which = 0;
  for (WaitingStem* stem : {&kept, &again}) {
    auto& result = results[which++];
    const auto a = stem->new_tape(), b = stem->new_tape();
    result.push_back(stem->forward(*a, 0));
    result.push_back(stem->forward(*b, 100));
    result.push_back(stem->backward(*a));
    result.push_back(stem->forward(*a, 200));
    result.push_back(stem->backward(*b));
    result.push_back(stem->backward(*a));
  }
  EXPECT_NE(results[0][2], results[0][4]);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace outrigger::nn
