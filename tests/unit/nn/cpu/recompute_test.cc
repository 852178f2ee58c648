#include "nn/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "network_run.h"
#include "nn/cpu/backend.h"
#include "nn/models.h"

namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::input_of;
using ::testing::IsEmpty;
using testing::narrow_resnet;
using testing::NetworkResult;
using testing::NetworkValues;
using testing::run_network;

constexpr int64_t kImages = 6;

Graph deep_net() {
  return build_model({.name = "resnet18", .height = 64, .width = 64, .channels = 3, .classes = 11});
}

TEST(RecomputeCuts, AreLegalOnesThatTakeLess) {
  const Graph graph = deep_net();
  const auto cuts = recompute_cuts(graph, graph.whole(), 1);
  ASSERT_THAT(cuts, Not(IsEmpty()));
  int before = 0;
  for (const int cut : cuts) {
    EXPECT_GT(cut, before);
    EXPECT_EQ(graph.cut_at(cut).layers, cut);
    before = cut;
  }
  EXPECT_LT(cuts.back(), graph.size());
}

TEST(RecomputeCuts, AreFewerTheMoreMicroBatchesAreInFlight) {
  const Graph graph = deep_net();
  size_t before = graph.cuts().size();
  for (const int in_flight : {1, 4, 16, 1000}) {
    const size_t now = recompute_cuts(graph, graph.whole(), in_flight).size();
    EXPECT_LE(now, before) << in_flight;
    before = now;
  }
  EXPECT_EQ(before, 0u) << "where what enters counts for all";
}

TEST(RecomputeCuts, LeaveWhatIsFrozenWhole) {
  const Graph graph = narrow_resnet("layer2");
  const int trained = graph.cut("layer2").layers;
  EXPECT_EQ(recompute_begin(graph, graph.whole()), trained);
  EXPECT_EQ(recompute_cuts(graph, graph.whole(), 1).front(), trained);
  const Segment frozen{0, graph.cut("layer1").layers};
  EXPECT_EQ(recompute_begin(graph, frozen), frozen.end);
  EXPECT_THAT(recompute_cuts(graph, frozen, 1), IsEmpty());
}

void expect_bitwise_the_same(const Graph& graph) {
  const NetworkValues values = draw_network_values(graph, kImages);
  ThreadPool threads(2);
  const NetworkResult kept =
      run_network(*cpu::make_cpu_backend(), threads, graph, Precision::kFloat32, values);
  const auto backend = make_recomputing(cpu::make_cpu_backend());
  EXPECT_EQ(kept, run_network(*backend, threads, graph, Precision::kFloat32, values));
  std::vector<int> all;
  for (const Cut& cut : graph.cuts().subspan(1)) all.push_back(cut.layers);
  EXPECT_EQ(kept, run_network(*backend, threads, graph, Precision::kFloat32, values, all));
}

TEST(Recomputing, GivesBitwiseTheSame) { expect_bitwise_the_same(narrow_resnet()); }

TEST(Recomputing, GivesBitwiseTheSameBehindFrozenLayers) {
  expect_bitwise_the_same(narrow_resnet("layer2"));
}

/// Counts its passes.
class CountedProgram final : public Program {
 public:
  struct Passes {
    int forward = 0;
    int backward = 0;
    bool operator==(const Passes&) const = default;
  };
  CountedProgram(std::unique_ptr<Program> program, Passes& passes)
      : program_(std::move(program)), passes_(passes) {}
  TensorSpec input_spec() const override { return program_->input_spec(); }
  TensorSpec output_spec() const override { return program_->output_spec(); }
  std::unique_ptr<Weights> new_weights() const override { return program_->new_weights(); }
  std::unique_ptr<Tape> new_tape() const override { return program_->new_tape(); }
  void load(Weights& weights, std::span<const float> parameters,
            std::span<const float> buffers) const override {
    program_->load(weights, parameters, buffers);
  }
  void forward(const Weights& weights, Tape& tape, const ForwardInput& in,
               const ForwardOutput& out) const override {
    ++passes_.forward;
    program_->forward(weights, tape, in, out);
  }
  void backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                const BackwardOutput& out) const override {
    ++passes_.backward;
    program_->backward(weights, tape, output_gradient, out);
  }

 private:
  const std::unique_ptr<Program> program_;
  Passes& passes_;
};

/// Counts the passes of segments by where they begin.
class CountingBackend final : public Backend {
 public:
  using Counts = std::map<int, CountedProgram::Passes>;
  explicit CountingBackend(Counts& counts) : counts_(counts) {}
  std::string name() const override { return "counting"; }
  std::shared_ptr<WorkSpace> make_work_space() const override { return cpu_->make_work_space(); }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool& threads) const override {
    return std::make_unique<CountedProgram>(cpu_->compile(graph, options, threads),
                                            counts_[options.segment.begin]);
  }

 private:
  const std::unique_ptr<Backend> cpu_ = cpu::make_cpu_backend();
  Counts& counts_;
};

TEST(Recomputing, RunsFrozenLayersOnceAndNotBackward) {
  const Graph graph = narrow_resnet("layer2");
  ThreadPool threads(2);
  CountingBackend::Counts passes;
  run_network(*make_recomputing(std::make_unique<CountingBackend>(passes)), threads, graph,
              Precision::kFloat32, draw_network_values(graph, kImages));
  ASSERT_GT(passes.size(), 1u);
  EXPECT_EQ(passes.at(0), (CountedProgram::Passes{1, 0}));
  EXPECT_EQ(passes.rbegin()->second, (CountedProgram::Passes{1, 1})) << "its memory still has it";
}

/// A stem whose micro-batches wait for their gradients.
struct Stem {
  explicit Stem(const Backend& backend, const Graph& graph, ThreadPool& threads)
      : program(backend.compile(
            graph, {.segment = {0, graph.cut("layer3").layers}, .batch = kImages, .seed = 5},
            threads)),
        weights(program->new_weights()),
        output(program->output_spec().type, program->output_spec().shape) {
    const NetworkValues values = draw_network_values(graph, kImages);
    const Segment segment{0, graph.cut("layer3").layers};
    parameters = graph.parameter_range(segment);
    buffers = graph.buffer_range(segment);
    program->load(*weights, part_of(std::span(values.parameters), parameters),
                  part_of(std::span(values.buffers), buffers));
  }
  std::vector<float> forward(Tape& tape, const NetworkValues& values) {
    std::vector<float> statistics(static_cast<size_t>(buffers.size));
    program->forward(*weights, tape, input_of(*program, values), {output.view(), statistics});
    const auto all = output.as<float>();
    return {all.begin(), all.end()};
  }
  std::vector<float> backward(Tape& tape) {
    std::vector<float> gradients(static_cast<size_t>(parameters.size));
    Tensor gradient(output.type(), output.shape());
    std::ranges::fill(gradient.as<float>(), 0.5f);
    program->backward(*weights, tape, gradient.view(), {{}, gradients});
    return gradients;
  }
  std::unique_ptr<Program> program;
  std::unique_ptr<Weights> weights;
  Tensor output;
  Range parameters, buffers;
};

TEST(Recomputing, KeepsMicroBatchesApart) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(2);
  Stem kept(*cpu::make_cpu_backend(), graph, threads);
  Stem again(*make_recomputing(cpu::make_cpu_backend()), graph, threads);
  NetworkValues first = draw_network_values(graph, kImages);
  NetworkValues second = first;
  std::ranges::reverse(second.pixels);
  for (uint64_t& slot : second.slots) slot += 100;

  std::vector<std::vector<float>> results[2];
  int which = 0;
  for (Stem* stem : {&kept, &again}) {
    auto& result = results[which++];
    const auto a = stem->program->new_tape(), b = stem->program->new_tape();
    result.push_back(stem->forward(*a, first));
    result.push_back(stem->forward(*b, second));
    result.push_back(stem->backward(*a));
    result.push_back(stem->forward(*a, second));
    result.push_back(stem->backward(*b));
    result.push_back(stem->backward(*a));
  }
  EXPECT_NE(results[0][0], results[0][1]);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Recomputing, TakesLessMemory) {
  const Graph graph = deep_net();
  ThreadPool threads(2);
  const ProgramOptions options{.segment = graph.whole(), .batch = 32};
  const auto backend = cpu::make_cpu_backend();
  const ProgramMemory kept = backend->compile(graph, options, threads)->memory();
  const ProgramMemory again =
      make_recomputing(cpu::make_cpu_backend())->compile(graph, options, threads)->memory();
  // The work space differs with the processor: without AVX-512 it is more than all that is kept.
  EXPECT_LT(again.kept, 0.2 * static_cast<double>(kept.kept));
  const double saved = static_cast<double>(kept.kept + kept.work_space) -
                       static_cast<double>(again.kept + again.work_space);
  EXPECT_GT(saved, 0.6 * static_cast<double>(kept.kept));
  EXPECT_EQ(again.weights, kept.weights);
}

TEST(Recomputing, LeavesInferenceAlone) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(2);
  const ProgramOptions options{.segment = graph.whole(), .batch = 2, .mode = Mode::kInference};
  const auto backend = make_recomputing(cpu::make_cpu_backend());
  const ProgramMemory kept = cpu::make_cpu_backend()->compile(graph, options, threads)->memory();
  const ProgramMemory again = backend->compile(graph, options, threads)->memory();
  EXPECT_EQ(again.kept, kept.kept);
  EXPECT_EQ(again.work_space, kept.work_space);
}

}  // namespace
}  // namespace outrigger::nn
