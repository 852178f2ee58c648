#include "worker/work/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "common/error.h"
#include "data/decode.h"
#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "tests/fakes/memory_blocks.h"
#include "tests/fakes/waiting_backend.h"
#include "tests/support/comes_true.h"

namespace outrigger::worker {
namespace {

using feed::WorkKind;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kMicroBatch = 2;

nn::Graph tiny_graph() {
  nn::GraphBuilder builder("tiny", {4, 4, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv1", nn::Convolution{.out_channels = 2, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("relu1", nn::Relu{});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  return builder.build();
}

/// Pixels that tell the slot; paths say what cannot be decoded or read.
class Pixels final : public PixelSource {
 public:
  Duration make(const feed::LeaseSample& sample, bool evaluation,
                std::span<std::byte> pixels) override {
    ++tried;
    if (sample.sample.path == "damaged") throw data::BrokenImage("damaged");
    if (sample.sample.path == "empty") throw data::NoImage("no image");
    if (sample.sample.path == "missing") throw IoError("no such file");
    std::ranges::fill(pixels, static_cast<std::byte>(sample.slot + (evaluation ? 100 : 0)));
    return read;
  }
  Duration prefetch(std::span<const feed::LeaseSample> samples, bool /*evaluation*/,
                    ThreadPool& /*threads*/) override {
    asked.push_back(samples.front().slot);
    return asking;
  }
  Duration read{0};    // what a sample's bytes are said to have taken
  Duration asking{0};  // what asking for a lease's files is said to have taken
  std::atomic<int> tried = 0;
  std::vector<uint64_t> asked;  // for the files of leases that begin with these slots
};

class AgentTest : public testing::Test {
 protected:
  feed::Lease lease(uint64_t step, int32_t cut, WorkKind kind = WorkKind::kForward) const {
    feed::Lease lease{.key = {.incarnation = 1, .step = step},
                      .kind = kind,
                      .cut = cut,
                      .stem_trains = cut > 0,
                      .stem_version = step};
    for (uint64_t i = 0; i < kMicroBatch; ++i)
      lease.samples.push_back({step * kMicroBatch + i, 0, {"image", 0, 0, 1}});
    return lease;
  }
  feed::StemWeights stem(uint64_t version) const {
    const nn::Segment segment{0, cut_};
    const auto parameters = static_cast<uint64_t>(graph_.parameter_range(segment).size);
    const auto buffers = static_cast<uint64_t>(graph_.buffer_range(segment).size);
    return {version,
            cut_,
            std::make_shared<const std::vector<float>>(parameters, 0.1f),
            std::make_shared<const std::vector<float>>(buffers, 1.0f),
            parameters,
            buffers};
  }
  std::shared_ptr<const Tensor> gradient() const {
    auto tensor = std::make_shared<Tensor>(ElementType::kFloat32, Shape{kMicroBatch, 4, 4, 2});
    std::ranges::fill(tensor->as<float>(), 1.0f);
    return tensor;
  }
  /// Works until nothing is left, and gives the results of one kind.
  template <typename Message>
  std::vector<Message> results() {
    while (agent_.work()) {
    }
    std::vector<Message> found;
    for (auto& message : agent_.take_outbox()) {
      if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
    }
    return found;
  }

  const nn::Graph graph_ = tiny_graph();
  const int32_t cut_ = graph_.cut("relu1").layers;
  const std::unique_ptr<nn::Backend> backend_ = nn::make_reference_backend();
  ThreadPool threads_{1};
  Pixels pixels_;
  Agent agent_{{.leases = 3, .micro_batch = kMicroBatch}, graph_, *backend_, threads_, pixels_};
};

TEST_F(AgentTest, AsksForWorkAndForMoreWhenAPieceIsDone) {
  const auto asked = results<feed::Pull>();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].leases, 3u);
  agent_.receive(lease(0, 0));
  const auto again = results<feed::Pull>();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].leases, 1u);
}

TEST_F(AgentTest, AsksForTwoAtOnceWhileItHasMoreToDo) {
  const auto asked_by = [this](Agent& agent) {
    static_cast<void>(agent.take_outbox());
    for (uint64_t step = 0; step < 4; ++step) agent.receive(lease(step, 0));
    std::vector<uint32_t> asked;  // with each micro-batch
    while (agent.work()) {
      const auto sent = agent.take_outbox();
      if (!sent.empty()) asked.push_back(0);
      for (const auto& message : sent) {
        if (const auto* pull = std::get_if<feed::Pull>(&message)) asked.back() += pull->leases;
      }
    }
    return asked;
  };
  const std::vector<uint32_t> wanted{0, 2, 1, 1};
  std::vector<uint32_t> asked;
  // A host that is busy elsewhere may make an instant long.
  for (int attempt = 0; attempt < 50 && asked != wanted; ++attempt) {
    Agent agent({.leases = 4, .asked_at_once = 2, .micro_batch = kMicroBatch}, graph_, *backend_,
                threads_, pixels_);
    asked = asked_by(agent);
  }
  EXPECT_EQ(asked, wanted);
}

TEST_F(AgentTest, WhatIsNotWantedAnyMoreLetsNoRoomWait) {
  Agent agent({.leases = 4, .asked_at_once = 2, .micro_batch = kMicroBatch}, graph_, *backend_,
              threads_, pixels_);
  static_cast<void>(agent.take_outbox());
  for (uint64_t step = 0; step < 4; ++step) agent.receive(lease(step, 0));
  agent.receive(feed::Cancel{lease(3, 0).key});
  const auto sent = agent.take_outbox();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(std::get<feed::Pull>(sent[0]).leases, 1u);
}

TEST_F(AgentTest, SendsPixelsWhereNothingIsCutAndKeepsNothing) {
  agent_.receive(lease(3, 0));
  const auto done = results<feed::MicroBatch>();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].tensor->type(), ElementType::kUint8);
  EXPECT_EQ(done[0].tensor->shape(), (Shape{kMicroBatch, 4, 4, 1}));
  EXPECT_EQ(done[0].tensor->as<uint8_t>().back(), 7);
  EXPECT_EQ(done[0].pixel_hash, pixel_hash(done[0].tensor->view().raw()));
  EXPECT_EQ(agent_.unfinished(), 0u);
}

TEST_F(AgentTest, MakesPixelsThatTheDeviceGetsInTheMemoryThatIsForThem) {
  const auto memory = fakes::MemoryBlocks::create(1);
  Agent agent({.leases = 3, .micro_batch = kMicroBatch, .pixel_memory = memory}, graph_, *backend_,
              threads_, pixels_);
  agent.receive(lease(0, 0, WorkKind::kEvaluate));
  EXPECT_EQ(memory->used(), 0u);
  agent.receive(lease(3, 0));
  while (agent.work()) {
  }
  std::shared_ptr<const Tensor> pixels;
  for (auto& message : agent.take_outbox()) {
    const auto* done = std::get_if<feed::MicroBatch>(&message);
    if (done != nullptr && done->key.step == 3) pixels = done->tensor;
  }
  ASSERT_NE(pixels, nullptr);
  EXPECT_TRUE(memory->hold(pixels->view().data));
  EXPECT_EQ(pixels->as<uint8_t>().back(), 7);
  pixels.reset();
  EXPECT_EQ(memory->used(), 0u);
}

TEST_F(AgentTest, TellsWhatOfItsTimeWasSpentOnReading) {
  agent_.receive(lease(0, 0));
  EXPECT_EQ(results<feed::MicroBatch>().at(0).times.read, 0);
  pixels_.read = pixels_.asking = std::chrono::hours(1);
  agent_.receive(lease(1, 0));
  const feed::WorkTimes times = results<feed::MicroBatch>().at(0).times;
  EXPECT_GT(times.decode, 0);
  EXPECT_FLOAT_EQ(times.read, times.decode) << "all of it, and no more";
}

TEST_F(AgentTest, AsksForFilesAheadAsAPieceOfWorkThatCountsAsReading) {
  pixels_.asking = std::chrono::hours(1);
  agent_.receive(lease(0, 0));
  agent_.receive(lease(1, 0));
  EXPECT_THAT(pixels_.asked, IsEmpty()) << "whoever receives waits for no disk";
  ASSERT_TRUE(agent_.work());
  EXPECT_THAT(pixels_.asked, testing::ElementsAre(0U, 2U))
      << "the next one's, however few pieces a lease is made in";
  const auto done = results<feed::MicroBatch>();
  ASSERT_THAT(done, SizeIs(2));
  for (const auto& result : done) {
    EXPECT_GT(result.times.read, 0);
    EXPECT_LE(result.times.read, result.times.decode);
  }
  EXPECT_THAT(pixels_.asked, SizeIs(2)) << "once each";
}

TEST_F(AgentTest, GivesALeaseBackAtItsFirstFailedRead) {
  auto missing = lease(0, 0);
  missing.samples[0].sample.path = "missing";
  agent_.receive(missing);
  EXPECT_THAT(results<feed::ReadFailed>(), SizeIs(1));
  EXPECT_EQ(pixels_.tried, 1) << "there is one thread";
}

TEST_F(AgentTest, AnEvaluationMayBeSmallerAndHasItsOwnCrop) {
  auto small = lease(0, 0, WorkKind::kEvaluate);
  small.samples.pop_back();
  agent_.receive(small);
  const auto done = results<feed::MicroBatch>();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].tensor->shape()[0], 1);
  EXPECT_EQ(done[0].tensor->as<uint8_t>().front(), 100);
}

TEST_F(AgentTest, ScoresWithTheWholeNetworkBehindAllTrainingAndAsksForNoMore) {
  const auto whole = [&](uint64_t version) {
    feed::StemWeights weights{version, graph_.size()};
    weights.parameters = std::make_shared<const std::vector<float>>(
        static_cast<size_t>(graph_.parameter_count()), 0.1f);
    weights.buffers = std::make_shared<const std::vector<float>>(
        static_cast<size_t>(graph_.buffer_count()), 1.0f);
    weights.parameter_count = weights.parameters->size();
    weights.buffer_count = weights.buffers->size();
    return weights;
  };
  constexpr uint64_t kEvaluation = uint64_t{1} << 62;
  static_cast<void>(agent_.take_outbox());
  agent_.receive(whole(kEvaluation));
  agent_.receive(lease(kEvaluation, graph_.size(), WorkKind::kScore));
  agent_.receive(lease(0, 0));
  while (agent_.work()) {
  }
  const auto sent = agent_.take_outbox();
  ASSERT_THAT(sent, SizeIs(3));
  EXPECT_TRUE(std::holds_alternative<feed::MicroBatch>(sent[0])) << "training goes first";
  EXPECT_TRUE(std::holds_alternative<feed::Pull>(sent[1]));
  const auto& scores = std::get<feed::Scores>(sent[2]);
  ASSERT_THAT(scores.values, SizeIs(kMicroBatch * nn::score_width(graph_, false)));
  nn::Scorer scorer(graph_, *backend_, threads_, {.batch = kMicroBatch});
  scorer.load(*whole(0).parameters, *whole(0).buffers);
  Tensor pixels(ElementType::kUint8, {kMicroBatch, 4, 4, 1});
  for (int64_t i = 0; i < kMicroBatch; ++i) {
    const auto slot = kEvaluation * kMicroBatch + static_cast<uint64_t>(i);
    std::ranges::fill(pixels.as<uint8_t>().subspan(static_cast<size_t>(i) * 16, 16),
                      static_cast<uint8_t>(slot + 100));
  }
  const std::vector<int32_t> labels(kMicroBatch, 1);
  const auto expected = scorer.score(std::as_const(pixels).view(), labels);
  EXPECT_THAT(scores.values, testing::ElementsAreArray(expected));
  EXPECT_EQ(agent_.unfinished(), 0u);
}

/// Training's samples wait until the gate opens.
class HeldTrainingPixels final : public PixelSource {
 public:
  Duration make(const feed::LeaseSample& /*sample*/, bool evaluation,
                std::span<std::byte> pixels) override {
    if (!evaluation) open.wait(false);
    std::ranges::fill(pixels, std::byte{1});
    ++made;
    return Duration{0};
  }
  std::atomic<bool> open = false;
  std::atomic<int> made = 0;
};

TEST_F(AgentTest, OfManyThreadsScoresWaitForWhatTrainingHasToDecode) {
  constexpr uint64_t kEvaluation = uint64_t{1} << 62;
  HeldTrainingPixels pixels;
  ThreadPool threads(4);
  Agent agent({.leases = 3, .micro_batch = kMicroBatch}, graph_, *backend_, threads, pixels);
  feed::StemWeights whole{kEvaluation, graph_.size()};
  whole.parameter_count = static_cast<uint64_t>(graph_.parameter_count());
  whole.buffer_count = static_cast<uint64_t>(graph_.buffer_count());
  whole.parameters = std::make_shared<const std::vector<float>>(whole.parameter_count, 0.1f);
  whole.buffers = std::make_shared<const std::vector<float>>(whole.buffer_count, 1.0f);
  agent.receive(whole);
  agent.receive(lease(kEvaluation, graph_.size(), WorkKind::kScore));
  static_cast<void>(agent.work());
  while (pixels.made < kMicroBatch) std::this_thread::yield();
  feed::Lease training = lease(0, 0);
  training.samples.resize(9, training.samples.front());  // more than threads
  agent.receive(training);
  const auto scored = [&] {
    return std::ranges::any_of(agent.take_outbox(), [](const auto& message) {
      return std::holds_alternative<feed::Scores>(message);
    });
  };
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(agent.work());
    ASSERT_FALSE(scored()) << "five of nine are left to decode";
  }
  pixels.open = true;
  pixels.open.notify_all();
  while (!scored()) static_cast<void>(agent.work());
}

TEST_F(AgentTest, OthersDecodeTheNextLeaseWhileItRunsAStem) {
  std::atomic<int> decoded = 0;
  int wanted = 0;
  const fakes::WaitingBackend backend(
      [&] { EXPECT_TRUE(testing_support::comes_true([&] { return decoded >= wanted; })); });
  ThreadPool threads(4);
  Pixels pixels;
  Agent agent({.leases = 4, .micro_batch = kMicroBatch, .stem_threads = 2}, graph_, backend,
              threads, pixels);
  agent.watch({[&] { ++decoded; }});
  agent.receive(lease(0, cut_));
  while (decoded == 0) static_cast<void>(agent.work());
  while (agent.work()) continue;
  agent.receive(stem(0));
  agent.receive(lease(1, cut_));
  wanted = 2;
  EXPECT_TRUE(agent.work()) << "forward";
  agent.watch({});
}

TEST_F(AgentTest, ScoresOfWeightsThatDidNotComeBreakTheProtocol) {
  agent_.receive(lease(9, graph_.size(), WorkKind::kScore));
  EXPECT_THROW(results<feed::Scores>(), InvalidInput);
}

TEST_F(AgentTest, DecodesAheadAndRunsTheStemWhenItsVersionComes) {
  agent_.receive(lease(1, cut_));
  EXPECT_THAT(results<feed::MicroBatch>(), IsEmpty());
  agent_.receive(stem(0));
  EXPECT_THAT(results<feed::MicroBatch>(), IsEmpty()) << "another version is not this one";
  agent_.receive(stem(1));
  const auto done = results<feed::MicroBatch>();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].tensor->shape(), (Shape{kMicroBatch, 4, 4, 2}));
  EXPECT_THAT(done[0].statistics, SizeIs(graph_.buffer_range({0, cut_}).size));
  EXPECT_EQ(agent_.unfinished(), 1u) << "the activations wait for their gradient";
}

TEST_F(AgentTest, AppliesTheGradientToWhatItKept) {
  agent_.receive(stem(0));
  agent_.receive(lease(0, cut_));
  static_cast<void>(results<feed::MicroBatch>());
  agent_.receive(feed::CutGradient{lease(0, cut_).key, WireFormat::kFloat32, gradient()});
  const auto done = results<feed::StemGradient>();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_THAT(*done[0].gradients, SizeIs(graph_.parameter_range({0, cut_}).size));
  EXPECT_EQ(agent_.unfinished(), 0u);
}

TEST_F(AgentTest, ABackwardLeaseGivesBitwiseTheGradientOfTheWorkerThatIsGone) {
  agent_.receive(stem(0));
  agent_.receive(lease(0, cut_));
  static_cast<void>(results<feed::MicroBatch>());
  agent_.receive(feed::CutGradient{lease(0, cut_).key, WireFormat::kFloat32, gradient()});
  const auto first = results<feed::StemGradient>();
  auto again = lease(0, cut_, WorkKind::kBackward);
  again.key.attempt = 1;
  again.cut_gradient = gradient();
  agent_.receive(again);
  const auto second = results<feed::StemGradient>();
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(*second[0].gradients, *first.at(0).gradients);
}

TEST_F(AgentTest, TheGradientThatIsHereGoesBeforeNewWork) {
  agent_.receive(stem(0));
  agent_.receive(lease(0, cut_));
  static_cast<void>(results<feed::MicroBatch>());
  agent_.receive(lease(1, 0));
  agent_.receive(feed::CutGradient{lease(0, cut_).key, WireFormat::kFloat32, gradient()});
  ASSERT_TRUE(agent_.work());
  const auto out = agent_.take_outbox();
  EXPECT_TRUE(std::ranges::any_of(out, [](const feed::WorkerMessage& message) {
    return std::holds_alternative<feed::StemGradient>(message);
  }));
}

TEST_F(AgentTest, TellsBrokenSamplesByTheirPlacesAndUnreadableOnesApart) {
  auto broken = lease(0, 0);
  broken.samples[1].sample.path = "damaged";
  agent_.receive(broken);
  broken.key.index = 1;
  broken.samples[1].sample.path = "empty";
  agent_.receive(broken);
  const auto told = results<feed::Broken>();
  ASSERT_THAT(told, SizeIs(2));
  for (const feed::Broken& one : told) {
    ASSERT_THAT(one.items, SizeIs(1));
    EXPECT_EQ(one.items[0].position, 1u);
  }
  EXPECT_FALSE(told[0].items[0].always);
  EXPECT_TRUE(told[1].items[0].always);
  auto missing = lease(1, 0);
  missing.samples[0].sample.path = "missing";
  agent_.receive(missing);
  const auto failed = results<feed::ReadFailed>();
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].reason, "no such file");
  EXPECT_EQ(agent_.unfinished(), 0u);
}

TEST_F(AgentTest, DropsWhatIsCancelledOrCommitted) {
  agent_.receive(lease(0, cut_));
  agent_.receive(lease(1, cut_));
  agent_.receive(lease(2, cut_));
  agent_.receive(feed::Cancel{lease(1, cut_).key});
  EXPECT_EQ(agent_.unfinished(), 2u);
  agent_.receive(feed::Committed{2, 2});
  EXPECT_EQ(agent_.unfinished(), 1u);
  agent_.receive(feed::Cancel{lease(7, cut_).key});  // done meanwhile
  EXPECT_EQ(agent_.unfinished(), 1u);
}

TEST_F(AgentTest, AfterItStopsPullingItFinishesAndAsksForNothing) {
  static_cast<void>(agent_.take_outbox());
  agent_.receive(lease(0, 0));
  agent_.stop_pulling();
  while (agent_.work()) {
  }
  for (const auto& message : agent_.take_outbox())
    EXPECT_FALSE(std::holds_alternative<feed::Pull>(message));
}

TEST_F(AgentTest, AFarewellSaysWhetherToComeAgain) {
  EXPECT_FALSE(agent_.farewell());
  agent_.receive(feed::Farewell{true, "restarting"});
  ASSERT_TRUE(agent_.farewell());
  EXPECT_EQ(agent_.farewell()->reason, "restarting");
  EXPECT_TRUE(agent_.farewell()->again);
}

TEST_F(AgentTest, RefusesAServerThatBreaksTheProtocol) {
  auto empty = lease(0, 0);
  empty.samples.clear();
  EXPECT_THROW(agent_.receive(empty), InvalidInput);
  auto half = lease(0, cut_);
  half.samples.pop_back();
  EXPECT_THROW(agent_.receive(half), InvalidInput);
  auto other_size = stem(0);
  other_size.parameter_count -= 1;
  EXPECT_THROW(agent_.receive(other_size), InvalidInput);
  agent_.receive(lease(5, cut_));
  EXPECT_THROW(
      agent_.receive(feed::CutGradient{lease(5, cut_).key, WireFormat::kFloat32, gradient()}),
      InvalidInput)
      << "there are no activations yet";
}

TEST(PixelHash, TellsPixelsApart) {
  std::vector<std::byte> pixels(19, std::byte{1});
  const uint64_t hash = pixel_hash(pixels);
  for (std::byte& pixel : pixels) {
    pixel = std::byte{2};
    EXPECT_NE(pixel_hash(pixels), hash);
    pixel = std::byte{1};
  }
  EXPECT_EQ(pixel_hash(pixels), hash);
}

}  // namespace
}  // namespace outrigger::worker
