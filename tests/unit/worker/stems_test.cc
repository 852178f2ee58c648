#include "worker/work/stems.h"

#include <gtest/gtest.h>

#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "worker/work/agent.h"

namespace outrigger::worker {
namespace {

constexpr int64_t kSamples = 2;

nn::Graph graph_of_two_stages() {
  nn::GraphBuilder builder("two-stages", {4, 4, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 2, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("conv2", nn::Convolution{.out_channels = 2, .kernel = 3, .padding = 1});
  builder.add("bn2", nn::BatchNorm{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  return builder.build();
}

/// The reference, which counts what it is asked to compile.
class CountingBackend final : public nn::Backend {
 public:
  std::string name() const override { return "counting"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& threads) const override {
    ++compiled;
    return reference_->compile(graph, options, threads);
  }
  mutable int compiled = 0;

 private:
  const std::unique_ptr<nn::Backend> reference_ = nn::make_reference_backend();
};

class BlackPixels final : public PixelSource {
 public:
  Duration make(const feed::LeaseSample& /*sample*/, bool /*evaluation*/,
                std::span<std::byte> pixels) override {
    std::ranges::fill(pixels, std::byte{0});
    return Duration{0};
  }
};

/// A worker whose plan moves.
class StemsTest : public testing::Test {
 protected:
  void send_stem(uint64_t version, int32_t cut) {
    const auto of = [](int64_t size) {
      return std::make_shared<const std::vector<float>>(static_cast<size_t>(size), 0.5f);
    };
    const auto parameters = of(graph_.parameter_range({0, cut}).size);
    const auto buffers = of(graph_.buffer_range({0, cut}).size);
    agent_.receive(
        feed::StemWeights{version, cut, parameters, buffers, parameters->size(), buffers->size()});
  }
  feed::WorkKey run_stem(uint64_t step, int32_t cut, uint64_t version, bool trains,
                         uint32_t index = 0) {
    feed::Lease lease{.key = {.incarnation = 1, .step = step, .index = index},
                      .cut = cut,
                      .stem_trains = trains,
                      .stem_version = version};
    lease.samples.resize(kSamples);
    agent_.receive(lease);
    work();
    return lease.key;
  }
  void run_step(uint64_t step, int32_t cut) {
    send_stem(step, cut);
    send_gradient(run_stem(step, cut, step, true), cut);
    agent_.receive(feed::Committed{step + 1, step + 1});
  }
  void send_gradient(const feed::WorkKey& key, int32_t cut) {
    Shape shape = graph_.cut_at(cut).shape;
    shape.insert(shape.begin(), kSamples);
    auto gradient = std::make_shared<Tensor>(ElementType::kFloat32, shape);
    std::ranges::fill(gradient->as<float>(), 1.0f);
    agent_.receive(feed::CutGradient{key, WireFormat::kFloat32, gradient});
    work();
  }
  int work() {
    int pieces = 0;
    while (agent_.work()) ++pieces;
    return pieces;
  }

  const nn::Graph graph_ = graph_of_two_stages();
  const int32_t shallow_ = graph_.cut("bn1").layers;
  const int32_t deep_ = graph_.cut("bn2").layers;
  CountingBackend backend_;
  ThreadPool threads_{1};
  BlackPixels pixels_;
  Agent agent_{{.micro_batch = kSamples}, graph_, backend_, threads_, pixels_};
};

TEST_F(StemsTest, ACutIsCompiledOnceWhileThePlanHasIt) {
  for (uint64_t step = 0; step < 3; ++step) run_step(step, shallow_);
  EXPECT_EQ(backend_.compiled, 1);
}

TEST_F(StemsTest, ACutThatThePlanHasLeftIsForgotten) {
  run_step(0, shallow_);
  run_step(1, deep_);
  EXPECT_EQ(backend_.compiled, 2);
  run_step(2, shallow_);
  EXPECT_EQ(backend_.compiled, 3) << "it took no memory meanwhile";
}

TEST_F(StemsTest, WhatAStepNeedsIsMadeWhileItsWeightsAreUnderWay) {
  constexpr uint32_t kLeases = 3;
  for (const uint64_t step : {7, 8}) {
    std::vector<feed::WorkKey> keys;
    for (uint32_t i = 0; i < kLeases; ++i) keys.push_back(run_stem(step, shallow_, step, true, i));
    EXPECT_EQ(backend_.compiled, 1) << "before there are weights";
    send_stem(step, shallow_);
    EXPECT_EQ(work(), 3) << "a forward pass each: all else is there";
    for (const feed::WorkKey& key : keys) send_gradient(key, shallow_);
    agent_.receive(feed::Committed{step + 1, step + 1});
  }
  EXPECT_EQ(backend_.compiled, 1);
}

TEST_F(StemsTest, MakesATapeForEachMicroBatchOfAStepAndNoMore) {
  Stems stems(graph_, backend_, {.batch = kSamples}, threads_);
  EXPECT_TRUE(stems.prepare(shallow_, 2)) << "its program";
  EXPECT_TRUE(stems.prepare(shallow_, 2));
  EXPECT_TRUE(stems.prepare(shallow_, 2));
  EXPECT_FALSE(stems.prepare(shallow_, 2));
  auto lent = stems.borrow_tape(shallow_);
  EXPECT_FALSE(stems.prepare(shallow_, 2)) << "what is lent comes back";
  EXPECT_TRUE(stems.prepare(deep_, 2)) << "its program";
  EXPECT_TRUE(stems.prepare(deep_, 1)) << "of the tape that lay about";
  EXPECT_FALSE(stems.prepare(deep_, 1));
  stems.give_back_tape(shallow_, std::move(lent));
  EXPECT_TRUE(stems.prepare(shallow_, 2)) << "of two it has one";
}

TEST_F(StemsTest, ACutOfALeaseThatWaitsForItsGradientStays) {
  send_stem(5, shallow_);
  const feed::WorkKey waiting = run_stem(5, shallow_, 5, true);
  run_step(1, deep_);
  run_step(2, deep_);
  send_gradient(waiting, shallow_);
  EXPECT_EQ(agent_.unfinished(), 0U);
  EXPECT_EQ(backend_.compiled, 2);
}

TEST_F(StemsTest, AFrozenStemThatMovedIsMadeAgainOfTheWeightsThatStay) {
  constexpr uint64_t kFrozen = UINT64_MAX;
  send_stem(kFrozen, deep_);
  for (uint64_t step = 0; const int32_t cut : {deep_, shallow_, deep_}) {
    run_stem(step, cut, kFrozen, false);
    EXPECT_EQ(agent_.unfinished(), 0U) << "done with what was sent once";
    ++step;
    agent_.receive(feed::Committed{step, step});
  }
  EXPECT_EQ(backend_.compiled, 3);
}

}  // namespace
}  // namespace outrigger::worker
