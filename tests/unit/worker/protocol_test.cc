#include "worker/protocol/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/error.h"

namespace outrigger::worker {
namespace {

using feed::WorkKey;
using transport::Frame;
using transport::ReceivedFrame;

const WorkKey kKey{.incarnation = 2, .step = 1ull << 40, .index = 3, .attempt = 4};

/// What the other end of a link would hand out.
ReceivedFrame travelled(const Frame& frame) {
  ReceivedFrame received{frame.type, frame.lane, frame.message, {}};
  for (const auto& payload : frame.payloads) {
    Tensor memory(ElementType::kUint8, {static_cast<int64_t>(payload.bytes.size())});
    std::ranges::copy(payload.bytes, memory.view().data);
    received.payloads.push_back(transport::Payload::of(std::move(memory)));
  }
  return received;
}

template <typename Message>
Message there_and_back(const Message& message) {
  constexpr bool kFromServer = std::is_constructible_v<feed::ServerMessage, Message>;
  if constexpr (kFromServer) {
    return std::get<Message>(
        read_server_message(travelled(to_frame(feed::ServerMessage{message}, {})), {}));
  } else {
    return std::get<Message>(
        read_worker_message(travelled(to_frame(feed::WorkerMessage{message}, {})), {}));
  }
}

std::shared_ptr<const Tensor> numbers(const Shape& shape) {
  auto tensor = std::make_shared<Tensor>(ElementType::kFloat32, shape);
  float next = 0.25f;
  for (float& value : tensor->as<float>()) value = (next *= -1.5f);
  return tensor;
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::ranges::equal(a.view().raw(), b.view().raw());
}

feed::Lease lease(feed::WorkKind kind) {
  feed::Lease lease{.key = kKey,
                    .kind = kind,
                    .cut = 5,
                    .stem_trains = true,
                    .stem_version = 17,
                    .activations = WireFormat::kFloat32,
                    .gradients = WireFormat::kFloat32};
  lease.samples.push_back({900, 12, {"shard-1.tar", 512, 4000, 7}});
  lease.samples.push_back({901, 13, {"ann/1.jpg", 0, 0, -1}});
  if (kind == feed::WorkKind::kBackward) lease.cut_gradient = numbers({2, 3, 1, 1});
  return lease;
}

TEST(Protocol, ALeaseArrivesWithItsSamples) {
  const auto read = there_and_back(lease(feed::WorkKind::kForward));
  EXPECT_EQ(read.key, kKey);
  EXPECT_EQ(read.cut, 5);
  EXPECT_TRUE(read.stem_trains);
  EXPECT_EQ(read.stem_version, 17u);
  ASSERT_EQ(read.samples.size(), 2u);
  EXPECT_EQ(read.samples[0].slot, 900u);
  EXPECT_EQ(read.samples[1].id, 13u);
  EXPECT_EQ(read.samples[0].sample, (data::Sample{"shard-1.tar", 512, 4000, 7}));
  EXPECT_EQ(read.cut_gradient, nullptr);
}

TEST(Protocol, ABackwardLeaseBringsTheGradientThatTheServerKept) {
  const auto sent = lease(feed::WorkKind::kBackward);
  const auto read = there_and_back(sent);
  ASSERT_NE(read.cut_gradient, nullptr);
  EXPECT_TRUE(equal(*read.cut_gradient, *sent.cut_gradient));
}

TEST(Protocol, StemWeightsBringTheFloatsThatTheyCountAndNoMore) {
  const auto arena = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5});
  const auto read = there_and_back(feed::StemWeights{8, 2, arena, arena, 3, 1});
  EXPECT_THAT(*read.parameters, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(*read.buffers, testing::ElementsAre(1));
  EXPECT_EQ(read.version, 8u);
}

TEST(Protocol, AMicroBatchKeepsEveryBitOverALosslessWire) {
  const feed::MicroBatch sent{.key = kKey,
                              .wire = WireFormat::kFloat32,
                              .tensor = numbers({2, 4, 4, 3}),
                              .statistics = {1.5f, -2},
                              .pixel_hash = 0xABCDEF0123456789};
  const auto read = there_and_back(sent);
  EXPECT_TRUE(equal(*read.tensor, *sent.tensor));
  EXPECT_EQ(read.statistics, sent.statistics);
  EXPECT_EQ(read.pixel_hash, sent.pixel_hash);
}

// Not even a copy: what is in another type than it travelled in is made anew, and so is what may
// change.
TEST(Protocol, ATensorStaysWhereItWasReceived) {
  const auto sent = numbers({2, 4, 4, 3});
  const auto frame_with = [&](WireFormat wire) {
    return travelled(to_frame(
        feed::WorkerMessage{feed::MicroBatch{.key = kKey, .wire = wire, .tensor = sent}}, {}));
  };
  const auto read = [](const transport::ReceivedFrame& frame, ElementType type) {
    return std::get<feed::MicroBatch>(read_worker_message(frame, {.activation_type = type})).tensor;
  };
  auto frame = frame_with(WireFormat::kFloat32);
  const auto tensor = read(frame, ElementType::kFloat32);
  EXPECT_EQ(tensor->view().data, frame.payloads.at(0).bytes.data());
  EXPECT_NE(read(frame, ElementType::kBFloat16)->view().data, frame.payloads.at(0).bytes.data());
  frame.payloads.at(0).owner = nullptr;
  EXPECT_NE(read(frame, ElementType::kFloat32)->view().data, frame.payloads.at(0).bytes.data());
  frame = {};
  EXPECT_TRUE(equal(*tensor, *sent)) << "it outlives its frame";
}

TEST(Protocol, ActivationsInInt8StaySoWhereADeviceUnpacksThem) {
  const auto sent = numbers({2, 4, 4, 3});
  const auto frame_with = [&](WireFormat wire) {
    return travelled(to_frame(
        feed::WorkerMessage{feed::MicroBatch{.key = kKey, .wire = wire, .tensor = sent}}, {}));
  };
  const auto read = [](const ReceivedFrame& frame, bool keep) {
    return std::get<feed::MicroBatch>(read_worker_message(frame, {.keep_int8 = keep}));
  };
  auto frame = frame_with(WireFormat::kInt8);
  const auto kept = read(frame, true);
  const auto unpacked = read(frame, false);
  EXPECT_EQ(unpacked.scales, nullptr);
  EXPECT_EQ(unpacked.tensor->type(), ElementType::kFloat32);
  ASSERT_NE(kept.scales, nullptr);
  EXPECT_EQ(kept.tensor->type(), ElementType::kInt8);
  EXPECT_EQ(kept.tensor->shape(), sent->shape());
  EXPECT_EQ(kept.scales->view().data, frame.payloads.at(0).bytes.data());
  frame = {};
  const auto floats = unpacked.tensor->as<float>();
  for (size_t i = 0; i < floats.size(); ++i) {
    EXPECT_EQ(floats[i],
              static_cast<float>(kept.tensor->as<int8_t>()[i]) * kept.scales->as<float>()[i % 3]);
  }
  EXPECT_EQ(read(frame_with(WireFormat::kFloat32), true).scales, nullptr);
}

TEST(Protocol, SmallMessagesComeBackAsTheyWere) {
  EXPECT_EQ(there_and_back(feed::Pull{9}).leases, 9u);
  EXPECT_EQ(there_and_back(feed::Cancel{kKey}).key, kKey);
  EXPECT_EQ(there_and_back(feed::Committed{7, 6}).oldest_version, 6u);
  const auto later = there_and_back(feed::Farewell{true, "later"});
  EXPECT_TRUE(later.again && !later.refused);
  const auto refused = there_and_back(feed::Farewell{false, "other data", true});
  EXPECT_TRUE(!refused.again && refused.refused);
  EXPECT_EQ(refused.reason, "other data");
  EXPECT_EQ(there_and_back(feed::ReadFailed{kKey, "why"}).reason, "why");
  const auto broken = there_and_back(feed::Broken{kKey, {{1, "cut"}, {3, "huge", true}}});
  ASSERT_EQ(broken.items.size(), 2u);
  EXPECT_EQ(broken.items[1].position, 3u);
  EXPECT_EQ(broken.items[1].reason, "huge");
  EXPECT_TRUE(broken.items[1].always && !broken.items[0].always);
  there_and_back(feed::Leaving{});
  feed::Scores scores{kKey, {1.5f, 1, -0.25f}};
  scores.times.forward = 2;
  scores.times.layers = {{0.5, 0.25}, {0, 1}};
  const auto scored = there_and_back(scores);
  EXPECT_EQ(scored.key, kKey);
  EXPECT_EQ(scored.values, scores.values);
  EXPECT_EQ(scored.times.forward, 2);
  ASSERT_EQ(scored.times.layers.size(), 2u);
  EXPECT_EQ(scored.times.layers[0].backward, 0.25f);
  EXPECT_EQ(there_and_back(lease(feed::WorkKind::kScore)).kind, feed::WorkKind::kScore);
}

TEST(Protocol, TheIntroductionComesBackAsItWas) {
  worker::Setup setup{.job = "{}",
                      .classes = 12,
                      .incarnation = 3,
                      .deepest_cut = 4,
                      .only_timed = true,
                      .instruction_set = "avx2",
                      .probe = {{"a.jpg", 0, 0, 1}}};
  const worker::Setup read = read_setup(travelled(to_frame(setup)));
  EXPECT_EQ(read.job, setup.job);
  EXPECT_EQ(read.deepest_cut, 4);
  EXPECT_TRUE(read.only_timed);
  EXPECT_EQ(read.instruction_set, "avx2");
  EXPECT_EQ(read.probe, setup.probe);
  Hello hello{.name = "host/1", .version = "1.2.3", .cores = 4, .numerics = "abc"};
  hello.probe.fill(std::byte{7});
  const Hello heard = read_hello(travelled(to_frame(hello)));
  EXPECT_EQ(heard.name, hello.name);
  EXPECT_EQ(heard.version, hello.version);
  EXPECT_EQ(heard.probe, hello.probe);
  EXPECT_EQ(heard.numerics, "abc");
}

std::vector<Frame> every_message() {
  const auto floats = std::make_shared<const std::vector<float>>(4);
  std::vector<Frame> frames;
  for (const feed::ServerMessage& message : std::initializer_list<feed::ServerMessage>{
           lease(feed::WorkKind::kForward), lease(feed::WorkKind::kBackward),
           feed::StemWeights{1, 2, floats, floats, 4, 2},
           feed::CutGradient{kKey, WireFormat::kFloat32, numbers({1, 2})}, feed::Cancel{kKey},
           feed::Committed{1, 1}, feed::Farewell{false, "over"}})
    frames.push_back(to_frame(message, {}));
  for (const feed::WorkerMessage& message : std::initializer_list<feed::WorkerMessage>{
           feed::Pull{1},
           feed::MicroBatch{.key = kKey,
           .wire = WireFormat::kFloat32,
           .tensor = numbers({2, 2}),
           .statistics = {1}},
           feed::StemGradient{kKey, floats}, feed::Broken{kKey, {{0, "cut"}}},
           feed::ReadFailed{kKey, "why"}, feed::Leaving{}, feed::Scores{kKey, {1.5f, 1}}})
    frames.push_back(to_frame(message, {}));
  return frames;
}

/// Reads a frame as either side would; false where both refuse it.
bool is_read(const ReceivedFrame& frame) {
  int refused = 0;
  try {
    static_cast<void>(read_server_message(frame, {}));
  } catch (const InvalidInput&) {
    ++refused;
  }
  try {
    static_cast<void>(read_worker_message(frame, {}));
  } catch (const InvalidInput&) {
    ++refused;
  }
  return refused < 2;
}

TEST(Protocol, AMessageCutShortOrTooLongIsRefused) {
  for (const Frame& frame : every_message()) {
    ASSERT_TRUE(is_read(travelled(frame))) << frame.type;
    for (size_t size = 0; size < frame.message.size(); ++size) {
      ReceivedFrame cut = travelled(frame);
      cut.message.resize(size);
      EXPECT_FALSE(is_read(cut)) << "type " << frame.type << " of " << size << " bytes";
    }
    ReceivedFrame longer = travelled(frame);
    longer.message.push_back(std::byte{0});
    EXPECT_FALSE(is_read(longer)) << frame.type;
  }
}

TEST(Protocol, APayloadThatIsMissingOrCutShortIsRefused) {
  for (const Frame& frame : every_message()) {
    if (frame.payloads.empty()) continue;
    ReceivedFrame missing = travelled(frame);
    missing.payloads.pop_back();
    EXPECT_FALSE(is_read(missing)) << frame.type;
    ReceivedFrame cut = travelled(frame);
    cut.payloads.back().bytes = cut.payloads.back().bytes.first(3);
    EXPECT_FALSE(is_read(cut)) << frame.type;
  }
}

TEST(Protocol, ATensorWithoutElementsIsRefused) {
  for (const Shape& shape : {Shape{0, 4, 4, 8}, Shape{2, 0}, Shape{0, int64_t{1} << 30}}) {
    feed::MicroBatch batch{.key = kKey,
                           .tensor = std::make_shared<Tensor>(ElementType::kFloat32, shape)};
    EXPECT_FALSE(is_read(travelled(to_frame(feed::WorkerMessage{std::move(batch)}, {}))))
        << to_string(shape);
  }
}

TEST(Protocol, AnyChangedByteIsReadOrRefusedAndNothingElse) {
  for (const Frame& frame : every_message()) {
    for (size_t at = 0; at < frame.message.size(); ++at) {
      for (const int value : {0, 1, 127, 255}) {
        ReceivedFrame changed = travelled(frame);
        changed.message[at] = static_cast<std::byte>(value);
        EXPECT_NO_THROW(is_read(changed)) << frame.type << ", byte " << at << " as " << value;
      }
    }
  }
}

TEST(Protocol, WhatTheOtherSideSendsIsNotWhatThisSideReads) {
  const auto pull = travelled(to_frame(feed::WorkerMessage{feed::Pull{1}}, {}));
  EXPECT_THROW(read_server_message(pull, {}), InvalidInput);
  EXPECT_THROW(read_hello(pull), InvalidInput);
  const auto committed = travelled(to_frame(feed::ServerMessage{feed::Committed{1, 1}}, {}));
  EXPECT_THROW(read_worker_message(committed, {}), InvalidInput);
  EXPECT_THROW(read_setup(committed), InvalidInput);
}

}  // namespace
}  // namespace outrigger::worker
