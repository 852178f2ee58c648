// How every Link behaves when one side is slow, or made so: see link_conformance_test.cc.
#include <gtest/gtest.h>

#include <thread>

#include "known_failures.h"
#include "link_pairs.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LinkFlowTest : public testing::TestWithParam<Carrier> {};

TEST_P(LinkFlowTest, AReceiverThatTakesNothingBoundsTheMemoryOfBothSides) {
  const LinkOptions options = quick_options();
  const LinkPair pair = connect(GetParam(), options);
  constexpr size_t kSize = 100'000;
  uint16_t sent = 0;
  while (pair.worker->send_within(frame_of(sent, {}, {pattern(kSize, sent)}), milliseconds(200))) {
    ++sent;
    ASSERT_LT(sent, 1000) << "nothing bounds the sender";
  }
  EXPECT_GE(sent * kSize, options.window_bytes / 2);
  EXPECT_LE(sent * kSize, options.window_bytes + options.max_queued_bytes);
  EXPECT_LE(pair.worker->stats().bytes_queued, options.max_queued_bytes);
  EXPECT_LE(pair.server->stats().bytes_untaken, options.window_bytes);
  EXPECT_GT(pair.worker->stats().send_blocked, milliseconds(100));
  for (uint16_t i = 0; i < sent; ++i) ASSERT_EQ(receive_one(*pair.server).type, i);
  EXPECT_TRUE(pair.worker->send_within(frame_of(sent), seconds(5)));
  EXPECT_EQ(receive_one(*pair.server).type, sent);
}

TEST_P(LinkFlowTest, OfWhatIsSentTogetherOnlyWhatThereIsRoomForIsQueued) {
  const LinkOptions options = quick_options();
  const LinkPair pair = connect(GetParam(), options);
  constexpr uint16_t kFrames = 100;
  std::vector<Frame> frames;
  for (uint16_t i = 0; i < kFrames; ++i) frames.push_back(frame_of(i, {}, {pattern(100'000, i)}));
  const auto sent =
      static_cast<uint16_t>(pair.worker->send_together_within(frames, milliseconds(200)));
  EXPECT_GE(sent * size_t{100'000}, options.window_bytes / 2);
  ASSERT_LE(sent * size_t{100'000}, options.window_bytes + options.max_queued_bytes);
  ASSERT_EQ(pair.worker->send_together_within({frame_of(sent, {}, {Bytes(100'000)})}, Duration{0}),
            0u);
  for (uint16_t i = 0; i < sent; ++i) ASSERT_EQ(receive_one(*pair.server).type, i);
  ASSERT_TRUE(pair.worker->flush(seconds(5)));
  EXPECT_EQ(pair.worker->send_together_within({frame_of(sent), frame_of(7)}, Duration{0}), 2u);
  EXPECT_EQ(receive_one(*pair.server).type, sent);
  EXPECT_EQ(receive_one(*pair.server).type, 7);
}

TEST_P(LinkFlowTest, MemoryOfFramesIsKeptOnlyForATime) {
  constexpr size_t kSize = 500'000;
  LinkOptions options = quick_options();
  for (const Duration keep : {Duration{0}, Duration{seconds(60)}}) {
    options.keep_unused = keep;
    const LinkPair pair = connect(GetParam(), options);
    pair.worker->send(frame_of(1, {}, {Bytes(kSize)}));
    receive_one(*pair.server);
    const TimePoint limit = system_now() + seconds(10);
    while (keep == Duration{0} && pair.server->stats().bytes_kept > 0 && system_now() < limit)
      std::this_thread::yield();
    const bool kept = keep > Duration{0} && GetParam() != Carrier::kMemory;
    EXPECT_EQ(pair.server->stats().bytes_kept >= kSize, kept);
  }
}

TEST_P(LinkFlowTest, ControlGetsThroughWhereDataIsBlocked) {
  const LinkPair pair = connect(GetParam());
  while (pair.worker->send_within(frame_of(1, {}, {Bytes(200'000)}), milliseconds(20))) {
  }
  Frame cancel = frame_of(2);
  cancel.lane = Lane::kControl;
  pair.worker->send(std::move(cancel));
  // Data may be taken before the control frame has arrived, but only what the window let through.
  int before = 0;
  while (receive_one(*pair.server).type != 2) ASSERT_LE(++before, 6);
}

TEST_P(LinkFlowTest, ControlOvertakesALargeFrameInTheMiddle) {
  LinkOptions options = quick_options();
  options.bytes_per_second = 20e6;
  const LinkPair pair = connect(GetParam(), options);
  pair.worker->send(frame_of(1, {}, {Bytes(size_t{8} << 20)}));
  Frame cancel = frame_of(2);
  cancel.lane = Lane::kControl;
  pair.worker->send(std::move(cancel));
  EXPECT_EQ(receive_one(*pair.server).type, 2);
  EXPECT_EQ(receive_one(*pair.server).type, 1);
}

TEST_P(LinkFlowTest, AThrottledLinkIsAsSlowAsItWasTold) {
  LinkOptions options = quick_options();
  options.bytes_per_second = 5e6;
  const LinkPair pair = connect(GetParam(), options);
  const TimePoint start = SystemClock().now();
  pair.worker->send(frame_of(1, {}, {Bytes(1'000'000)}));
  receive_one(*pair.server);
  const Duration took = SystemClock().now() - start;
  EXPECT_GE(took, milliseconds(185));  // 200 ms less the first piece, which goes at once
  EXPECT_LE(took, seconds(5));
}

TEST_P(LinkFlowTest, AThrottledLinkMeasuresTheRateThatItWasTold) {
  if (GetParam() == Carrier::kMemory) GTEST_SKIP() << "it writes nothing";
  LinkOptions options = quick_options();
  options.bytes_per_second = 5e6;
  const LinkPair pair = connect(GetParam(), options);
  pair.worker->send(frame_of(1, {}, {Bytes(1'000'000)}));
  receive_one(*pair.server);
  const double rate = pair.worker->stats().send_rate;
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, 5.1e6);
  EXPECT_LE(pair.server->stats().receive_rate, 5.1e6) << "though the frame's pieces come in bursts";
}

TEST_P(LinkFlowTest, AThrottledLinkKeepsUpItsHeartbeats) {
  LinkOptions options = quick_options();
  options.bytes_per_second = 1e6;
  options.silence_limit = milliseconds(400);
  const LinkPair pair = connect(GetParam(), options);
  pair.worker->send(frame_of(1, {}, {Bytes(1'000'000)}));
  EXPECT_EQ(receive_one(*pair.server).type, 1);
}

TEST_P(LinkFlowTest, ADelayedLinkHandsFramesOutLaterButNotFewer) {
  LinkOptions options = quick_options();
  options.delay = milliseconds(100);
  const LinkPair pair = connect(GetParam(), options);
  const TimePoint start = SystemClock().now();
  for (uint16_t i = 0; i < 10; ++i) pair.worker->send(frame_of(i));
  for (uint16_t i = 0; i < 10; ++i) EXPECT_EQ(receive_one(*pair.server).type, i);
  const Duration took = SystemClock().now() - start;
  EXPECT_GE(took, milliseconds(100));
  EXPECT_LT(took, milliseconds(900));
}

INSTANTIATE_TEST_SUITE_P(Every, LinkFlowTest, testing::ValuesIn(carriers()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace outrigger::transport
