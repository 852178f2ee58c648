#include <gmock/gmock.h>

#include <cstring>

#include "common/error.h"
#include "common/random.h"
#include "nn/graph_builder.h"
#include "nn/models.h"
#include "nn/program.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

// Everything a layer can be: grouped convolution, norms, PReLU, a residual block, dropout, pools,
// linear layers.
Graph everything(const std::string& freeze = "") {
  GraphBuilder builder("everything", {8, 8, 3});
  builder.add("normalize", Normalize{{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}});
  builder.add("conv",
              Convolution{.out_channels = 8, .kernel = 3, .stride = 2, .padding = 1, .bias = true});
  builder.add("bn", BatchNorm{});
  const int identity = builder.add("prelu", Prelu{});
  builder.add("block.conv", Convolution{.out_channels = 8, .kernel = 3, .padding = 1, .groups = 4});
  const int main = builder.add("block.bn", BatchNorm{});
  builder.add("block.add", Add{}, {main, identity});
  builder.add("block.relu", Relu{});
  builder.add("drop", Dropout{0.25f});
  builder.add("pool", AveragePool{});
  builder.add("flatten", Flatten{});
  builder.add("fc1", Linear{6});
  builder.add("bn1", BatchNorm{});
  builder.add("fc2", Linear{5});
  if (!freeze.empty()) builder.freeze_until(freeze);
  return builder.build();
}

constexpr int64_t kBatch = 4;

struct Result {
  std::vector<float> output, statistics, gradients;
};

class ReferenceProgram : public ::testing::Test {
 protected:
  ReferenceProgram() {
    RandomStream random(5, RandomUse::kSyntheticData, 0);
    for (size_t i = 0; i < kBatch * 8 * 8 * 3; ++i)
      pixels_.push_back(static_cast<uint8_t>(random.below(256)));
    for (size_t i = 0; i < kBatch * 5; ++i) output_gradient_.push_back(random.normal());
    slots_ = {3, 1, 4, 159};
  }

  // Runs the segments one after another, forward and back.
  Result run(const Graph& graph, const std::vector<Segment>& segments,
             Precision precision = Precision::kFloat32);

  const std::unique_ptr<Backend> backend_ = make_reference_backend();
  ThreadPool threads_{1};
  std::vector<uint8_t> pixels_;
  std::vector<float> output_gradient_;
  std::vector<uint64_t> slots_;
};

struct Stage {
  std::unique_ptr<Program> program;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Tape> tape;
  Tensor output, input_gradient;
};

ConstTensorView view_of(const TensorSpec& spec, const void* data) {
  return {spec.type, spec.shape, static_cast<const std::byte*>(data)};
}

Result ReferenceProgram::run(const Graph& graph, const std::vector<Segment>& segments,
                             Precision precision) {
  Result result;
  std::vector<float> parameters(static_cast<size_t>(graph.parameter_count()));
  std::vector<float> buffers(static_cast<size_t>(graph.buffer_count()));
  initialize(graph, 9, parameters, buffers);
  result.statistics.assign(buffers.size(), -1.0f);
  result.gradients.assign(parameters.size(), -1.0f);

  std::vector<Stage> stages;
  for (const Segment& segment : segments) {
    Stage& stage = stages.emplace_back();
    stage.program = backend_->compile(
        graph, {segment, kBatch, precision, Mode::kTraining, segment.begin > 0, 77}, threads_);
    stage.weights = stage.program->new_weights();
    stage.tape = stage.program->new_tape();
    stage.program->load(*stage.weights,
                        part_of(std::span(parameters), graph.parameter_range(segment)),
                        part_of(std::span(buffers), graph.buffer_range(segment)));
    stage.output = Tensor(stage.program->output_spec().type, stage.program->output_spec().shape);
    ConstTensorView input = view_of(stage.program->input_spec(), pixels_.data());
    if (segment.begin > 0) {
      stage.input_gradient =
          Tensor(stage.program->input_spec().type, stage.program->input_spec().shape);
      input = stages[stages.size() - 2].output.view();
    }
    stage.program->forward(
        *stage.weights, *stage.tape, {input, kBatch, slots_, {}},
        {stage.output.view(), part_of(std::span(result.statistics), graph.buffer_range(segment))});
  }
  ConstTensorView gradient = view_of(stages.back().program->output_spec(), output_gradient_.data());
  for (size_t i = stages.size(); i-- > 0;) {
    Stage& stage = stages[i];
    TensorView input_gradient;
    if (segments[i].begin > 0) input_gradient = stage.input_gradient.view();
    stage.program->backward(
        *stage.weights, *stage.tape, gradient,
        {input_gradient, part_of(std::span(result.gradients), graph.parameter_range(segments[i]))});
    gradient = input_gradient;
  }
  const auto output = stages.back().output.as<float>();
  result.output.assign(output.begin(), output.end());
  return result;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_F(ReferenceProgram, GivesBitwiseTheSameWhereverItIsCut) {
  const Graph graph = everything();
  const Result whole = run(graph, {graph.whole()});
  for (const Cut& cut : graph.cuts()) {
    if (cut.layers == 0) continue;
    const Result split = run(graph, {{0, cut.layers}, {cut.layers, graph.size()}});
    EXPECT_TRUE(same_bits(split.output, whole.output)) << cut.name;
    EXPECT_TRUE(same_bits(split.statistics, whole.statistics)) << cut.name;
    EXPECT_TRUE(same_bits(split.gradients, whole.gradients)) << cut.name;
  }
  const auto cuts = graph.cuts();
  const Result thirds =
      run(graph,
          {{0, cuts[1].layers}, {cuts[1].layers, cuts[3].layers}, {cuts[3].layers, graph.size()}});
  EXPECT_TRUE(same_bits(thirds.gradients, whole.gradients));
}

TEST_F(ReferenceProgram, TheMaskOfDropoutFollowsTheSlotAndNotThePlaceInTheBatch) {
  GraphBuilder builder("drop", {4, 4, 3});
  builder.add("normalize", Normalize{{0, 0, 0}, {1, 1, 1}});
  builder.add("drop", Dropout{0.5f});
  const Graph graph = builder.build();
  const auto outputs = [&](const std::vector<uint64_t>& slots) {
    const std::vector<uint8_t> pixels(2 * 48, 255);
    const auto program = backend_->compile(graph, {graph.whole(), 2}, threads_);
    const auto weights = program->new_weights();
    const auto tape = program->new_tape();
    std::vector<float> output(2 * 48);
    program->load(*weights, {}, {});
    program->forward(
        *weights, *tape, {view_of(program->input_spec(), pixels.data()), 2, slots, {}},
        {{ElementType::kFloat32, {2, 4, 4, 3}, reinterpret_cast<std::byte*>(output.data())}, {}});
    return output;
  };
  const std::vector<float> ab = outputs({10, 20}), ba = outputs({20, 10});
  EXPECT_TRUE(std::equal(ab.begin(), ab.begin() + 48, ba.begin() + 48));
  EXPECT_TRUE(std::equal(ab.begin() + 48, ab.end(), ba.begin()));
  EXPECT_NE(ab, ba);
}

TEST_F(ReferenceProgram, FrozenLayersUseRunningAveragesAndGetNoGradient) {
  const Graph graph = everything("block");
  const Result result = run(graph, {graph.whole()});
  for (const Parameter& parameter : graph.parameters()) {
    double sum = 0;
    for (const float value : part_of(std::span(result.gradients), parameter.range))
      sum += std::abs(value);
    EXPECT_EQ(sum > 0, parameter.trainable) << parameter.name;
  }
  const Range frozen = graph.buffer_range({0, graph.cut("block").layers});
  EXPECT_TRUE(std::all_of(result.statistics.begin(), result.statistics.begin() + frozen.size,
                          [](float value) { return value == -1.0f; }));
  EXPECT_NE(result.statistics[static_cast<size_t>(frozen.size)], -1.0f);
}

TEST_F(ReferenceProgram, InferenceOfFewerSamplesGivesTheSameForEach) {
  const Graph graph = everything();
  std::vector<float> parameters(static_cast<size_t>(graph.parameter_count()));
  std::vector<float> buffers(static_cast<size_t>(graph.buffer_count()));
  initialize(graph, 9, parameters, buffers);
  const auto program = backend_->compile(
      graph, {graph.whole(), kBatch, Precision::kFloat32, Mode::kInference}, threads_);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  program->load(*weights, parameters, buffers);
  const auto infer = [&](int64_t count) {
    Tensor output(ElementType::kFloat32, program->output_spec().shape);
    program->forward(*weights, *tape,
                     {view_of(program->input_spec(), pixels_.data()), count, {}, {}},
                     {output.view(), {}});
    return std::vector<float>(output.as<float>().begin(), output.as<float>().begin() + count * 5);
  };
  const std::vector<float> all = infer(kBatch);
  for (int64_t count = 1; count < kBatch; ++count) {
    EXPECT_EQ(infer(count), std::vector<float>(all.begin(), all.begin() + count * 5));
  }
}

TEST_F(ReferenceProgram, BFloat16RoundsWhatCrossesACut) {
  const Graph graph = everything();
  const Result exact = run(graph, {graph.whole()});
  const Segment stem{0, graph.cut("block").layers}, head{graph.cut("block").layers, graph.size()};
  const Result rounded = run(graph, {stem, head}, Precision::kBFloat16);
  for (size_t i = 0; i < exact.output.size(); ++i) {
    EXPECT_NEAR(rounded.output[i], exact.output[i], 0.05) << i;  // 8 bits of mantissa, a few layers
  }
  EXPECT_NE(rounded.output, exact.output);
}

TEST_F(ReferenceProgram, RefusesASegmentThatIsNoLegalOne) {
  const Graph graph = everything();
  EXPECT_THROW(backend_->compile(graph, {{0, 2}, kBatch}, threads_), InvalidInput);
  EXPECT_THROW(backend_->compile(graph, {{2, graph.size()}, kBatch}, threads_), InvalidInput);
}

}  // namespace
}  // namespace outrigger::nn
