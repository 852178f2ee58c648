#include <gtest/gtest.h>

#include <map>

#include "network_run.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/blocks.h"
#include "nn/cpu/instruction_set.h"
#include "nn/models.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

using testing::NetworkResult;
using testing::relative_distance;

struct Network {
  const char* model;
  int64_t side;
  HeadKind head;
  int64_t batch;
};
std::ostream& operator<<(std::ostream& out, const Network& network) { return out << network.model; }

Graph build(const Network& network) {
  ModelOptions options;
  options.name = network.model;
  options.height = options.width = network.side;
  options.channels = network.side == 28 ? 1 : 3;
  options.classes = 11;
  if (network.head == HeadKind::kArcFace) options.embedding = 32;
  options.head = network.head;
  options.dropout = 0.2f;
  return build_model(options);
}

class EveryNetwork : public ::testing::TestWithParam<Network> {
 protected:
  // Drawing some ten million weights takes longer than using them: once a network.
  struct Drawn {
    Graph graph;
    testing::NetworkValues values;
  };
  static const Drawn& drawn(const Network& network) {
    static std::map<std::string, Drawn> all;
    auto found = all.find(network.model);
    if (found == all.end()) {
      Graph graph = build(network);
      auto values = testing::draw_network_values(graph, network.batch);
      found = all.emplace(network.model, Drawn{std::move(graph), std::move(values)}).first;
    }
    return found->second;
  }

  const Graph& graph_ = drawn(GetParam()).graph;
  const testing::NetworkValues& values_ = drawn(GetParam()).values;
  const std::unique_ptr<Backend> backend_ = cpu::make_cpu_backend();

  NetworkResult run(int threads, Precision precision, const std::vector<int>& cuts = {}) {
    ThreadPool pool(threads);
    return run_network(*backend_, pool, graph_, precision, values_, cuts);
  }
};

TEST_P(EveryNetwork, IsTheSameForAnyNumberOfThreads) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const NetworkResult one = run(1, precision);
    EXPECT_EQ(one, run(2, precision));
    EXPECT_EQ(one, run(3, precision));
    EXPECT_EQ(one, run(3, precision)) << "in another run";
  }
}

TEST_P(EveryNetwork, IsTheSameWhereverItIsCut) {
  const NetworkResult whole = run(2, Precision::kFloat32);
  std::vector<int> all;
  for (const Cut& cut : graph_.cuts().subspan(1)) {
    EXPECT_EQ(whole, run(2, Precision::kFloat32, {cut.layers})) << "cut at " << cut.name;
    all.push_back(cut.layers);
  }
  EXPECT_EQ(whole, run(2, Precision::kFloat32, all)) << "cut everywhere";
}

TEST_P(EveryNetwork, ComesCloseToTheReference) {
  ThreadPool pool(2);
  const auto reference = make_reference_backend();
  const NetworkResult expected =
      run_network(*reference, pool, graph_, Precision::kFloat32, values_, {});
  const NetworkResult actual = run(2, Precision::kFloat32);
  // A rounding that turns a ReLU or moves a maximum moves a whole gradient: norms, not elements.
  EXPECT_LT(relative_distance(actual.output, expected.output), 1e-4);
  EXPECT_LT(relative_distance(actual.statistics, expected.statistics), 1e-5);
  EXPECT_LT(relative_distance(actual.gradients, expected.gradients), 5e-3);
}

TEST_P(EveryNetwork, ComesCloseInBfloat16) {
  const NetworkResult exact = run(2, Precision::kFloat32);
  const NetworkResult rounded = run(2, Precision::kBFloat16);
  // Eight bits of mantissa, some tens of layers.
  EXPECT_LT(relative_distance(rounded.output, exact.output), 0.1);
  EXPECT_LT(relative_distance(rounded.statistics, exact.statistics), 0.05);
  if (cpu::computes_bfloat16()) {
    EXPECT_GT(relative_distance(rounded.output, exact.output), 0.0);
  } else {
    EXPECT_EQ(rounded.output, exact.output) << "computed in float32 here";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryNetwork,
                         ::testing::Values(Network{"lenet5", 28, HeadKind::kLinear, 18},
                                           Network{"resnet18", 32, HeadKind::kLinear, 10},
                                           Network{"iresnet18", 32, HeadKind::kArcFace, 9},
                                           Network{"mobilefacenet", 32, HeadKind::kArcFace, 8}),
                         [](const auto& parameter) { return std::string(parameter.param.model); });

TEST(Blocks, DependOnTheNetworkAndTheBatchAlone) {
  const Graph small = build({"lenet5", 28, HeadKind::kLinear, 1});
  const Graph large = build({"resnet18", 112, HeadKind::kLinear, 1});
  EXPECT_EQ(cpu::choose_blocks(large, 64).size, 4);
  EXPECT_EQ(cpu::choose_blocks(small, 64).size, 16);
  EXPECT_EQ(cpu::choose_blocks(small, 16).size, 4) << "at least four blocks, for four threads";
  EXPECT_EQ(cpu::choose_blocks(small, 1).size, 1);
}

TEST(Blocks, TellHowLongTheWholeBatchTakesByASample) {
  const Graph large = build({"resnet18", 112, HeadKind::kLinear, 1});  // blocks of four
  ASSERT_EQ(cpu::samples_to_time(large, 64, 8), 32);
  EXPECT_EQ(cpu::times_as_long(large, 64, 32, 8), 2);
  ASSERT_EQ(cpu::samples_to_time(large, 32, 6), 24);
  EXPECT_EQ(cpu::times_as_long(large, 32, 24, 6), 2) << "two of six threads have a second block";
  EXPECT_EQ(cpu::times_as_long(large, 16, 16, 64), 1);
  ASSERT_EQ(cpu::samples_to_time(large, 33, 8), 32);
  EXPECT_EQ(cpu::times_as_long(large, 33, 32, 8), 1.25) << "one more sample, behind a block";
}

TEST(Blocks, CoverTheBatch) {
  const cpu::Blocks blocks{10, 4};
  ASSERT_EQ(blocks.count(), 3);
  EXPECT_EQ(blocks.first(2), 8);
  EXPECT_EQ(blocks.samples(1), 4);
  EXPECT_EQ(blocks.samples(2), 2);
  EXPECT_EQ(blocks.rest(), 2);
}

TEST(Blocks, ChunksOfWeightGradientsHoldEnoughPlaces) {
  EXPECT_EQ(cpu::choose_chunks({64, 4}, 28 * 28).size, 4);
  EXPECT_EQ(cpu::choose_chunks({64, 4}, 7 * 7).size, 16);
  EXPECT_EQ(cpu::choose_chunks({64, 4}, 4 * 4).size, 32);
  EXPECT_EQ(cpu::choose_chunks({6, 2}, 1).size, 6) << "never more than the batch";
}

}  // namespace
}  // namespace outrigger::nn
