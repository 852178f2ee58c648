// What every Link promises, held against every kind of link. What a kind cannot do stands in
// known_failures.h.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "known_failures.h"
#include "link_pairs.h"
#include "tests/fakes/memory_blocks.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LinkTest : public testing::TestWithParam<Carrier> {};

TEST_P(LinkTest, FramesArriveInTheOrderInWhichTheyWereSent) {
  const LinkPair pair = connect(GetParam());
  constexpr uint16_t kFrames = 2000;
  std::thread sender([&] {
    for (uint16_t i = 0; i < kFrames; ++i) pair.worker->send(frame_of(i, pattern(i % 7, i)));
  });
  for (uint16_t i = 0; i < kFrames; ++i) {
    const ReceivedFrame frame = receive_one(*pair.server);
    ASSERT_EQ(frame.type, i);
    ASSERT_EQ(frame.message, pattern(i % 7, i));
  }
  sender.join();
}

TEST_P(LinkTest, WhatIsSentTogetherArrivesInThisOrder) {
  const LinkPair pair = connect(GetParam());
  const Bytes borrowed = pattern(70'000, 3);
  pair.worker->send_together({});
  for (int round = 0; round < 20; ++round) {
    std::vector<Frame> frames;
    for (uint16_t i = 0; i < 40; ++i)
      frames.push_back(frame_of(i, pattern(i, i), {pattern(i % 10 == 9 ? 300'000 : i * 10U, i)}));
    frames[20].payloads = {Payload::borrowed(borrowed)};
    std::thread sender([&] { pair.worker->send_together(std::move(frames)); });
    for (uint16_t i = 0; i < 40; ++i) {
      const ReceivedFrame frame = receive_one(*pair.server);
      ASSERT_EQ(frame.type, i);
      ASSERT_EQ(frame.message, pattern(i, i));
      ASSERT_EQ(frame.payloads.size(), 1U);
      const auto bytes = frame.payloads[0].bytes;
      const Bytes expected = i == 20 ? borrowed : pattern(i % 10 == 9 ? 300'000 : i * 10U, i);
      ASSERT_EQ(Bytes(bytes.begin(), bytes.end()), expected);
    }
    sender.join();
  }
  EXPECT_TRUE(pair.worker->flush(seconds(5)));
  EXPECT_EQ(pair.worker->stats().frames_sent, 800U);
}

TEST_P(LinkTest, RandomSizesArriveUnchangedInBothDirectionsAtOnce) {
  const LinkPair pair = connect(GetParam());
  constexpr int kFrames = 60;
  const auto sizes = [](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<size_t> result(random() % 5);
    for (size_t& size : result) size = random() % (random() % 2 == 0 ? 100 : 300'000);
    return result;
  };
  const auto send_all = [&](Link& link) {
    for (uint16_t i = 0; i < kFrames; ++i) {
      std::vector<Bytes> payloads;
      for (const size_t size : sizes(i)) payloads.push_back(pattern(size, i));
      link.send(frame_of(i, pattern(i * 37U, i), std::move(payloads)));
    }
  };
  const auto check_all = [&](Link& link) {
    for (uint16_t i = 0; i < kFrames; ++i) {
      const ReceivedFrame frame = receive_one(link);
      ASSERT_EQ(frame.type, i);
      ASSERT_EQ(frame.message, pattern(i * 37U, i));
      const auto expected = sizes(i);
      ASSERT_EQ(frame.payloads.size(), expected.size());
      for (size_t p = 0; p < expected.size(); ++p) {
        const auto bytes = frame.payloads[p].bytes;
        ASSERT_EQ(Bytes(bytes.begin(), bytes.end()), pattern(expected[p], i));
      }
    }
  };
  std::thread a([&] { send_all(*pair.server); });
  std::thread b([&] { send_all(*pair.worker); });
  std::thread c([&] { check_all(*pair.server); });
  check_all(*pair.worker);
  a.join();
  b.join();
  c.join();
}

TEST_P(LinkTest, EmptyFramesAndEmptyPayloadsArrive) {
  const LinkPair pair = connect(GetParam());
  pair.server->send(frame_of(7));
  pair.server->send(frame_of(8, {}, {Bytes{}, Bytes(1), Bytes{}}));
  EXPECT_EQ(receive_one(*pair.worker).type, 7);
  const ReceivedFrame frame = receive_one(*pair.worker);
  EXPECT_TRUE(frame.message.empty());
  ASSERT_EQ(frame.payloads.size(), 3U);
  EXPECT_EQ(frame.payloads[0].bytes.size(), 0U);
  EXPECT_EQ(frame.payloads[1].bytes.size(), 1U);
}

TEST_P(LinkTest, AFrameLargerThanTheWindowTravelsAlone) {
  const LinkPair pair = connect(GetParam());
  const Bytes large = pattern(size_t{5} << 20, 3);
  std::thread sender([&] {
    pair.worker->send(frame_of(1, {}, {Bytes(10)}));
    pair.worker->send(frame_of(2, {}, {large}));
    pair.worker->send(frame_of(3));
  });
  EXPECT_EQ(receive_one(*pair.server).type, 1);
  const ReceivedFrame frame = receive_one(*pair.server);
  EXPECT_EQ(frame.type, 2);
  EXPECT_TRUE(std::equal(large.begin(), large.end(), frame.payloads.at(0).bytes.begin(),
                         frame.payloads.at(0).bytes.end()));
  EXPECT_EQ(receive_one(*pair.server).type, 3);
  sender.join();
}

TEST_P(LinkTest, ReceivedTensorsAreAlignedAndOutliveTheLink) {
  std::vector<ReceivedFrame> frames;
  {
    const LinkPair pair = connect(GetParam());
    for (uint16_t i = 0; i < 20; ++i) {
      Frame frame{.type = i};
      for (const int64_t size : {i + 1, 2 * i + 1}) {
        Tensor tensor(ElementType::kUint8, {size});
        std::fill_n(tensor.view().data, size, static_cast<std::byte>(i));
        frame.payloads.push_back(Payload::of(std::move(tensor)));
      }
      pair.server->send(std::move(frame));
      frames.push_back(receive_one(*pair.worker));
    }
  }
  for (const ReceivedFrame& frame : frames) {
    for (const Payload& payload : frame.payloads) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(payload.bytes.data()) % 64, 0U);
      for (const std::byte byte : payload.bytes)
        ASSERT_EQ(byte, static_cast<std::byte>(frame.type));
    }
  }
}

// A memory link hands the sender's own on. The first frames are kept, so that the source runs out.
TEST_P(LinkTest, PayloadsAreReceivedIntoMemoryOfTheSourceAsFarAsItHasAny) {
  if (GetParam() == Carrier::kMemory) GTEST_SKIP() << "nothing is received into memory";
  constexpr size_t kBlocks = 3;
  const auto source = fakes::MemoryBlocks::create(kBlocks);
  LinkOptions server = quick_options();
  server.memory = source;
  std::vector<ReceivedFrame> frames;
  {
    const LinkPair pair = connect(GetParam(), server, quick_options());
    for (uint16_t i = 0; i < 2 * kBlocks; ++i) {
      pair.worker->send(frame_of(i, {}, {pattern(100'000, i), pattern(10, i)}));
      frames.push_back(receive_one(*pair.server));
    }
    pair.server->send(frame_of(1, {}, {pattern(100, 1)}));
    EXPECT_FALSE(source->hold(receive_one(*pair.worker).payloads.at(0).bytes.data()));
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    for (const Payload& payload : frames[i].payloads) {
      EXPECT_EQ(source->hold(payload.bytes.data()), i < kBlocks) << i;
      EXPECT_EQ(Bytes(payload.bytes.begin(), payload.bytes.end()),
                pattern(payload.bytes.size(), static_cast<uint32_t>(i)));
    }
  }
  EXPECT_EQ(source->used(), kBlocks);
  frames.clear();
  EXPECT_EQ(source->used(), 0U);
}

TEST_P(LinkTest, SendersAtTheSameTimeKeepTheirOwnOrder) {
  const LinkPair pair = connect(GetParam());
  constexpr uint16_t kSenders = 4;
  constexpr uint32_t kFrames = 300;
  std::vector<std::thread> senders;
  for (uint16_t s = 0; s < kSenders; ++s) {
    senders.emplace_back([&, s] {
      for (uint32_t i = 0; i < kFrames; ++i) {
        ByteWriter writer;
        writer.number(i);
        pair.worker->send(frame_of(s, writer.take(), {pattern(i * 11, s)}));
      }
    });
  }
  std::vector<uint32_t> next(kSenders);
  for (uint32_t i = 0; i < kSenders * kFrames; ++i) {
    const ReceivedFrame frame = receive_one(*pair.server);
    ASSERT_EQ(ByteReader(frame.message).number<uint32_t>(), next.at(frame.type)++);
  }
  for (std::thread& sender : senders) sender.join();
}

TEST_P(LinkTest, CloseEndsEveryBlockedCallOnBothSides) {
  const LinkPair pair = connect(GetParam());
  const Bytes borrowed(400'000);
  const auto fill = [&] {
    for (;;)
      pair.worker->send(Frame{.type = 1, .message = {}, .payloads = {Payload::borrowed(borrowed)}});
  };
  auto sending = std::async(std::launch::async, fill);
  auto also_sending = std::async(std::launch::async, fill);
  auto receiving =
      std::async(std::launch::async, [&] { return pair.worker->receive(seconds(100)); });
  while (pair.server->stats().bytes_untaken < 400'000) std::this_thread::yield();
  pair.worker->close("enough");
  EXPECT_THROW(sending.get(), Cancelled);
  EXPECT_THROW(also_sending.get(), Cancelled);
  EXPECT_THROW(receiving.get(), Cancelled);
  EXPECT_THROW(pair.worker->send(frame_of(1)), Cancelled);
  EXPECT_EQ(pair.worker->closed_reason(), "enough");
  const std::string told = wait_for_end(*pair.server);
  EXPECT_NE(told.find("enough"), std::string::npos) << told;
  EXPECT_THROW(pair.server->send(frame_of(1)), LinkClosed);
  EXPECT_NE(pair.server->closed_reason(), std::nullopt);
}

TEST_P(LinkTest, WhatWasFlushedBeforeCloseArrives) {
  const LinkPair pair = connect(GetParam());
  for (uint16_t i = 0; i < 5; ++i) pair.worker->send(frame_of(i, {}, {pattern(150'000, i)}));
  ASSERT_TRUE(pair.worker->flush(seconds(10)));
  pair.worker->close("done");
  for (uint16_t i = 0; i < 5; ++i) {
    const ReceivedFrame frame = receive_one(*pair.server);
    const auto bytes = frame.payloads.at(0).bytes;
    ASSERT_EQ(Bytes(bytes.begin(), bytes.end()), pattern(150'000, i));
  }
  EXPECT_THROW(pair.server->receive(seconds(10)), LinkClosed);
}

TEST_P(LinkTest, BorrowedBytesAreFreeWhenSendReturns) {
  const LinkPair pair = connect(GetParam());
  for (uint16_t i = 0; i < 50; ++i) {
    Bytes bytes = pattern(70'000, i);
    pair.worker->send(Frame{.type = i, .message = {}, .payloads = {Payload::borrowed(bytes)}});
    std::fill(bytes.begin(), bytes.end(), std::byte{0xEE});
    const ReceivedFrame frame = receive_one(*pair.server);
    const auto received = frame.payloads.at(0).bytes;
    ASSERT_EQ(Bytes(received.begin(), received.end()), pattern(70'000, i));
  }
}

TEST_P(LinkTest, SendRefusesWhatAReceiverWouldRefuse) {
  LinkOptions options = quick_options();
  options.max_frame_bytes = size_t{1} << 20;
  const LinkPair pair = connect(GetParam(), options);
  EXPECT_THROW(pair.worker->send(frame_of(1, {}, {Bytes(options.max_frame_bytes + 1)})),
               InvalidInput);
  Frame control = frame_of(1, Bytes(100'000));
  control.lane = Lane::kControl;
  EXPECT_THROW(pair.worker->send(std::move(control)), InvalidInput);
  EXPECT_THROW(pair.worker->send(frame_of(1, {}, std::vector<Bytes>(5000))), InvalidInput);
  pair.worker->send(frame_of(2));
  EXPECT_EQ(receive_one(*pair.server).type, 2);
}

TEST_P(LinkTest, AFrameBeyondTheReceiversLimitClosesTheLinkAndSaysWhy) {
  if (GetParam() == Carrier::kMemory)
    GTEST_SKIP() << "both ends of a memory link share their limits";
  LinkOptions small = quick_options();
  small.max_frame_bytes = 1000;
  const LinkPair pair = connect(GetParam(), small, quick_options());
  pair.worker->send(frame_of(1, {}, {Bytes(900)}));
  EXPECT_EQ(receive_one(*pair.server).type, 1);
  pair.worker->send(frame_of(2, {}, {Bytes(1001)}));
  EXPECT_NE(wait_for_end(*pair.server).find("at most 1000 are allowed"), std::string::npos);
  EXPECT_FALSE(wait_for_end(*pair.worker).empty());
}

TEST_P(LinkTest, ReceiveReturnsNothingAfterItsTimeout) {
  const LinkPair pair = connect(GetParam());
  EXPECT_FALSE(pair.server->receive(Duration(0)));
  const TimePoint start = SystemClock().now();
  EXPECT_FALSE(pair.server->receive(milliseconds(30)));
  EXPECT_GE(SystemClock().now() - start, milliseconds(30));
}

TEST_P(LinkTest, AnIdleLinkStaysOpenBeyondTheSilenceLimit) {
  LinkOptions options = quick_options();
  options.silence_limit = milliseconds(400);
  const LinkPair pair = connect(GetParam(), options);
  EXPECT_FALSE(pair.server->receive(milliseconds(1000)));
  pair.worker->send(frame_of(1));
  EXPECT_EQ(receive_one(*pair.server).type, 1);
}

TEST_P(LinkTest, DestroyingOneEndEndsTheOtherOne) {
  LinkPair pair = connect(GetParam());
  pair.worker.reset();
  EXPECT_FALSE(wait_for_end(*pair.server).empty());
}

TEST_P(LinkTest, StatisticsCountWhatWasSentAndReceived) {
  const LinkPair pair = connect(GetParam());
  for (int i = 0; i < 3; ++i) pair.worker->send(frame_of(1, Bytes(50), {Bytes(1000)}));
  for (int i = 0; i < 3; ++i) receive_one(*pair.server);
  ASSERT_TRUE(pair.worker->flush(seconds(10)));
  EXPECT_EQ(pair.worker->stats().frames_sent, 3U);
  EXPECT_EQ(pair.server->stats().frames_received, 3U);
  EXPECT_GE(pair.worker->stats().bytes_sent, 3U * 1050);
  EXPECT_EQ(pair.server->stats().bytes_received, pair.worker->stats().bytes_sent);
  EXPECT_EQ(pair.server->stats().bytes_untaken, 0U);
  if (GetParam() == Carrier::kMemory) return;
  while (pair.server->stats().round_trip == Duration(0)) std::this_thread::yield();
  EXPECT_LT(pair.server->stats().round_trip, seconds(10));
}

TEST_P(LinkTest, ThreeHundredLinksLeaveNoDescriptorAndNoThreadBehind) {
  connect(GetParam());  // what is made once and kept
  const size_t descriptors = count_in_proc("fd");
  const size_t threads = count_in_proc("task");
  for (int i = 0; i < 300; ++i) {
    LinkPair pair = connect(GetParam());
    pair.worker->send(frame_of(1, {}, {Bytes(1000)}));
    receive_one(*pair.server);
    if (i % 2 == 0) pair.worker.reset();
  }
  EXPECT_EQ(count_in_proc("fd"), descriptors);
  // A joined thread may stay in /proc for a moment.
  const TimePoint limit = SystemClock().now() + seconds(10);
  while (count_in_proc("task") > threads && SystemClock().now() < limit) std::this_thread::yield();
  EXPECT_EQ(count_in_proc("task"), threads);
}

INSTANTIATE_TEST_SUITE_P(Every, LinkTest, testing::ValuesIn(carriers()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace outrigger::transport
