#include "nn/cuda/pass_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "host_engine.h"
#include "network_run.h"
#include "nn/cuda/compiler.h"
#include "nn/cuda/memory_book.h"
#include "nn/cuda/program.h"
#include "nn/models.h"

namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::narrow_resnet;
using testing::run_network;

// What is frozen before all that trains keeps nothing, and is not computed again.
TEST(PassPlan, RunsNothingThatIsFrozenAgain) {
  const Graph graph = narrow_resnet("layer1");
  const ProgramOptions options{.segment = graph.whole(), .batch = 2};
  const auto engine = cuda::testing::make_host_engine();
  const auto chosen = cuda::choose_pieces(graph, options, *engine);
  ASSERT_GE(chosen.size(), 2u);
  EXPECT_EQ(chosen.front(), graph.cut("layer1").layers);
  std::vector<int> all;
  for (const Cut& cut : graph.cuts().subspan(1)) all.push_back(cut.layers);
  for (const auto& cuts : {chosen, all}) {
    cuda::Compilation compilation(graph, options, *engine);
    const cuda::PassPlan plan = cuda::plan_pass(compilation, cuts);
    int again = 0;
    for (const cuda::Turn& turn : plan.backward) {
      if (!turn.again) continue;
      ++again;
      EXPECT_GE(turn.step->output(), graph.cut("layer1").layers);
    }
    EXPECT_GT(again, 0);
  }
}

TEST(PassPlan, RunsEachPieceAgainRightBeforeItsBackward) {
  const Graph graph = narrow_resnet();
  const auto engine = cuda::testing::make_host_engine();
  const ProgramOptions options{.segment = graph.whole(), .batch = 2};
  cuda::Compilation compilation(graph, options, *engine);
  const std::vector<int> cuts{graph.cut("layer1").layers, graph.cut("layer2").layers};
  const cuda::PassPlan plan = cuda::plan_pass(compilation, cuts);
  // Of the turns one after another: the piece, and how.
  std::vector<std::pair<int, bool>> order;
  for (const cuda::Turn& turn : plan.backward) {
    const auto piece = static_cast<int>(
        std::ranges::count_if(cuts, [&](int cut) { return turn.step->output() >= cut; }));
    if (order.empty() || order.back() != std::pair(piece, turn.again))
      order.emplace_back(piece, turn.again);
  }
  EXPECT_EQ(order, (std::vector<std::pair<int, bool>>{
                       {2, false}, {1, true}, {1, false}, {0, true}, {0, false}}));
}

TEST(RecomputingProgram, GivesTheSameCutOrWhole) {
  const Graph graph = narrow_resnet();
  ThreadPool threads(1);
  const auto values = draw_network_values(graph, 4);
  const auto kept =
      run_network(*cuda::testing::make_host_backend(), threads, graph, Precision::kFloat32, values);
  const auto backend = cuda::testing::make_host_backend(nullptr, true);
  EXPECT_EQ(run_network(*backend, threads, graph, Precision::kFloat32, values), kept);
  EXPECT_EQ(run_network(*backend, threads, graph, Precision::kFloat32, values,
                        {graph.cut("layer1").layers, graph.cut("avgpool").layers}),
            kept);
}

class RecomputingModel : public ::testing::TestWithParam<std::string> {};

TEST_P(RecomputingModel, TakesLessMemoryOfTheDevice) {
  ModelOptions model{.name = GetParam(), .classes = 10};
  if (GetParam() == "mobilefacenet" || GetParam() == "iresnet50") model.head = HeadKind::kArcFace;
  const Graph graph = build_model(model);
  const auto engine = cuda::testing::make_host_engine();
  const ProgramOptions options{.segment = graph.whole(), .batch = 8};
  const cuda::CudaProgram kept(graph, options, engine);
  const cuda::CudaProgram again(graph, options, engine,
                                cuda::choose_pieces(graph, options, *engine));
  const auto bytes = [](const cuda::CudaProgram& program) {
    return static_cast<double>(program.tape_bytes() + program.scratch_bytes());
  };
  RecordProperty("ratio", std::to_string(bytes(again) / bytes(kept)));
  EXPECT_LT(again.tape_bytes(), kept.tape_bytes() / 4);
  EXPECT_LT(bytes(again), 0.6 * bytes(kept));
  EXPECT_EQ(again.memory().weights, kept.memory().weights);
}
INSTANTIATE_TEST_SUITE_P(Models, RecomputingModel,
                         ::testing::Values("resnet18", "resnet50", "iresnet50", "mobilefacenet"));

int64_t layer_bytes(const std::vector<cuda::MemoryUse>& uses, const std::string& layer) {
  const auto use = std::ranges::find(uses, layer, &cuda::MemoryUse::what);
  return use == uses.end() ? 0 : use->bytes;
}

// Norms with what is behind them are one step, whose name is the last one's.
TEST(KeptByLayers, NamesWhatIsOnTheTape) {
  const Graph graph = narrow_resnet();
  const auto engine = cuda::testing::make_host_engine();
  const ProgramOptions options{.segment = graph.whole(), .batch = 4};
  const cuda::CudaProgram kept(graph, options, engine);
  const auto uses = *kept.kept_by_layers();
  EXPECT_EQ(static_cast<size_t>(cuda::sum(uses)), kept.tape_bytes());
  EXPECT_TRUE(std::ranges::is_sorted(uses, std::ranges::greater(), &cuda::MemoryUse::bytes));
  EXPECT_EQ(layer_bytes(uses, "conv1"), 4 * 16 * 16 * 16 * 4);
  EXPECT_EQ(layer_bytes(uses, "layer1.relu1"), 4 * 8 * 8 * 16 * 4 + 256) << "and statistics";
  EXPECT_EQ(layer_bytes(uses, "bn1"), 0);
  const cuda::CudaProgram again(graph, options, engine, {graph.cut("layer1").layers});
  EXPECT_EQ(layer_bytes(*again.kept_by_layers(), "conv1"), 0);
  EXPECT_EQ(layer_bytes(*again.kept_by_layers(), "layer1.relu2"), 4 * 8 * 8 * 16 * 4);
}

TEST(KeptByLayers, AreThoseOfTheProgramWithTheMostThatIsThere) {
  const Graph graph = narrow_resnet();
  const cuda::Compiler compiler(cuda::testing::make_host_engine(), false);
  EXPECT_TRUE(compiler.kept_by_layers().empty());
  const auto compile = [&](int64_t batch) {
    return compiler.compile(graph, {.segment = graph.whole(), .batch = batch});
  };
  auto large = compile(4);
  const auto small = compile(2);
  const auto most = compiler.kept_by_layers();
  EXPECT_EQ(layer_bytes(most, "conv1"), 4 * 16 * 16 * 16 * 4);
  large.reset();
  EXPECT_EQ(layer_bytes(compiler.kept_by_layers(), "conv1"), 2 * 16 * 16 * 16 * 4);
}

TEST(ChoosePieces, LeavesInferenceAlone) {
  const Graph graph = narrow_resnet();
  EXPECT_TRUE(cuda::choose_pieces(graph, {.segment = graph.whole(), .mode = Mode::kInference},
                                  *cuda::testing::make_host_engine())
                  .empty());
}

}  // namespace
}  // namespace outrigger::nn
