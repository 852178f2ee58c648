// What goes out next on a link, and who writes it.
#include "transport/internal/send_queue.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <thread>

#include "link_pairs.h"
#include "transport/internal/socket.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kLarge = size_t{1} << 20;

class SendQueueTest : public testing::Test {
 protected:
  explicit SendQueueTest(const LinkOptions& options = {}) : queue_(options) {
    queue_.set_window(Lane::kData, options.window_bytes);
    queue_.set_window(Lane::kControl, kMaxControlBytes);
  }

  void push(uint16_t type, size_t bytes, Lane lane = Lane::kData) {
    Frame frame = frame_of(type, {}, {Bytes(bytes)});
    frame.lane = lane;
    ASSERT_NE(queue_.push(std::move(frame), Duration{0}), nullptr);
  }
  /// Types of the frames that are or begin in the packet, in their order.
  std::vector<uint16_t> types_in_packet() const {
    std::vector<uint16_t> types;
    for (const HeaderBytes& bytes : packet_.headers) {
      const PacketHeader header = decode_header(bytes, LinkOptions().max_frame_bytes);
      if (header.kind == PacketKind::kStart) types.push_back(header.type);
    }
    return types;
  }
  LinkStats stats() const {
    LinkStats stats;
    queue_.add_to(stats);
    return stats;
  }

  SendQueue queue_;
  Packet packet_;
};

TEST_F(SendQueueTest, SmallFramesTravelTogetherThoseOfControlFirst) {
  push(1, 1000);
  push(2, 1000);
  push(3, 10, Lane::kControl);
  ASSERT_TRUE(queue_.next_small(packet_));
  EXPECT_EQ(types_in_packet(), (std::vector<uint16_t>{3, 1, 2}));
  EXPECT_GT(stats().bytes_queued, 2010U);  // with the sizes of their payloads
  queue_.written(packet_);
  EXPECT_EQ(stats().frames_sent, 3U);
  EXPECT_EQ(stats().bytes_queued, 0U);
  EXPECT_TRUE(queue_.flush(Duration{0}));
  EXPECT_FALSE(queue_.next_small(packet_));
}

TEST_F(SendQueueTest, OnlySoMuchTravelsTogether) {
  constexpr size_t kHalf = size_t{32} << 10;
  push(1, kHalf);
  push(2, kHalf);
  push(3, kHalf - 100);
  ASSERT_TRUE(queue_.next_small(packet_));
  EXPECT_EQ(types_in_packet(), std::vector<uint16_t>{1});
  queue_.written(packet_);
  ASSERT_TRUE(queue_.next_small(packet_));
  EXPECT_EQ(types_in_packet(), (std::vector<uint16_t>{2, 3}));
}

TEST_F(SendQueueTest, WhatIsLargeIsForTheWriter) {
  push(1, kLarge);
  push(2, 10);
  EXPECT_FALSE(queue_.next_small(packet_));
  size_t pieces = 0;
  for (; stats().frames_sent < 2; ++pieces) {
    ASSERT_TRUE(queue_.next(packet_));
    queue_.written(packet_);
  }
  EXPECT_EQ(pieces,
            kLarge / LinkOptions().chunk_bytes + 1);  // the last, a few bytes, with the other
}

TEST_F(SendQueueTest, WhileOneWritesNobodyElseDoes) {
  push(1, 10);
  ASSERT_TRUE(queue_.next_small(packet_));
  Packet other;
  push(2, 10);
  EXPECT_FALSE(queue_.next_small(other));
  auto writer = std::async(std::launch::async, [&] { return queue_.next(other); });
  EXPECT_EQ(writer.wait_for(milliseconds(50)), std::future_status::timeout);
  queue_.written(packet_);
  // Whoever has written looks for more: what came meanwhile is its own, or is the writer's.
  const bool mine = queue_.next_small(packet_);
  if (mine) {
    queue_.written(packet_);
    EXPECT_FALSE(queue_.next_small(packet_));
    queue_.end({.by_us = true, .reason = "the test ends"});
  }
  EXPECT_EQ(writer.get(), !mine);
}

TEST_F(SendQueueTest, TheWriterWritesTheRestOfWhatOthersLeftEvenOnceEnded) {
  push(1, 1000);
  ASSERT_TRUE(queue_.next_small(packet_));
  size_t bytes = 0;
  for (const auto& piece : packet_.pieces) bytes += piece.size();
  packet_.drop(bytes - 300);
  queue_.left();
  queue_.end({.by_us = true, .reason = "the test ends"});
  EXPECT_FALSE(queue_.next_small(packet_));
  ASSERT_TRUE(queue_.next(packet_));
  ASSERT_EQ(packet_.pieces.size(), 1U);
  EXPECT_EQ(packet_.pieces.front().size(), 300U);
  queue_.written(packet_);
  EXPECT_FALSE(queue_.next(packet_));
}

TEST_F(SendQueueTest, WhatIsBorrowedIsFreeWhenItIsWrittenOrNeverWillBe) {
  const Bytes bytes(1000);
  for (const bool written : {true, false}) {
    const auto item = queue_.push({.type = 1, .payloads = {Payload::borrowed(bytes)}}, Duration{0});
    ASSERT_TRUE(queue_.next_small(packet_));
    auto wait = std::async(std::launch::async, [&] { queue_.wait_for_borrowed(*item); });
    if (written) {
      queue_.written(packet_);
      EXPECT_NO_THROW(wait.get());
    } else {
      queue_.end({.by_us = false, .reason = "the peer is gone"});
      EXPECT_EQ(wait.wait_for(milliseconds(50)), std::future_status::timeout);
      queue_.abandon();
      EXPECT_THROW(wait.get(), LinkClosed);
    }
  }
}

class ThrottledSendQueueTest : public SendQueueTest {
 protected:
  ThrottledSendQueueTest() : SendQueueTest({.bytes_per_second = 1e4}) {}
};

TEST_F(ThrottledSendQueueTest, WhatMustWaitIsForTheWriter) {
  push(1, 900);
  ASSERT_TRUE(queue_.next_small(packet_));
  const TimePoint start = packet_.start;
  queue_.written(packet_);
  push(2, 900);
  EXPECT_FALSE(queue_.next_small(packet_));
  ASSERT_TRUE(queue_.next(packet_));
  while (types_in_packet().empty()) {  // a heartbeat
    queue_.written(packet_);
    ASSERT_TRUE(queue_.next(packet_));
  }
  EXPECT_GE(system_now() - start, milliseconds(90));
}

TEST(SocketChannelTest, WritesAtOnceWhatThereIsRoomForAndTheRestWhenItIsRead) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const auto near = make_socket_channel(FileDescriptor(ends[0]), seconds(20));
  const auto far = make_socket_channel(FileDescriptor(ends[1]), seconds(20));
  const std::array<Bytes, 3> sent = {pattern(100, 1), pattern(8 * kLarge, 2), pattern(100, 3)};
  Packet packet;
  for (const Bytes& one : sent) packet.pieces.emplace_back(one);
  const size_t at_once = near->write_some(packet.pieces);
  EXPECT_GT(at_once, 100U);
  EXPECT_LT(at_once, 8 * kLarge);
  packet.drop(at_once);
  EXPECT_EQ(near->write_some(packet.pieces), 0U);
  const std::jthread writer([&] { near->write(packet.pieces); });
  std::array<Bytes, 3> received = {Bytes(100), Bytes(8 * kLarge), Bytes(100)};
  const std::array<std::span<std::byte>, 3> places = {received[0], received[1], received[2]};
  far->read(places);
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace outrigger::transport
