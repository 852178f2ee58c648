// What a link takes for a round trip, by a peer that is played by hand.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "transport/internal/framing.h"
#include "transport/internal/socket.h"
#include "transport/internal/stream_link.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kInterval = seconds(3);

class RoundTripTest : public testing::Test {
 protected:
  RoundTripTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    peer_ = make_socket_channel(FileDescriptor(ends[1]), seconds(60));
    link_ = std::make_unique<StreamLink>(make_socket_channel(FileDescriptor(ends[0]), seconds(60)),
                                         LinkOptions{.heartbeat_interval = kInterval,
                                                     .silence_limit = seconds(60),
                                                     .close_limit = milliseconds(50)});
  }

  /// The next packet of that kind that comes to the peer.
  PacketHeader next(PacketKind kind) {
    for (;;) {
      HeaderBytes bytes;
      const std::array<std::span<std::byte>, 1> piece = {bytes};
      peer_->read(piece);
      const PacketHeader header = decode_header(bytes, LinkOptions().max_frame_bytes);
      if (header.kind == kind) return header;
    }
  }
  void tell(PacketKind kind, TimePoint stamp) {
    const HeaderBytes bytes =
        encode({.kind = kind, .total = static_cast<uint64_t>(stamp.time_since_epoch().count())});
    const std::array<std::span<const std::byte>, 1> piece = {bytes};
    peer_->write(piece);
  }
  /// The round trip once a heartbeat that was sent then has come back.
  Duration round_trip_after(TimePoint sent) {
    tell(PacketKind::kPong, sent);
    tell(PacketKind::kPing, system_now());  // once that is answered it is
    next(PacketKind::kPong);
    return link_->stats().round_trip;
  }

  std::unique_ptr<Channel> peer_;
  std::unique_ptr<StreamLink> link_;
};

TEST_F(RoundTripTest, IsTheLeastOfTheLastHeartbeats) {
  const Duration first = round_trip_after(system_now() - milliseconds(500));
  EXPECT_GE(first, milliseconds(500));
  const Duration second = round_trip_after(system_now() - milliseconds(50));
  EXPECT_GE(second, milliseconds(50));
  EXPECT_LT(second, first);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(round_trip_after(system_now() - milliseconds(500)), second);
  EXPECT_GE(round_trip_after(system_now() - milliseconds(500)), milliseconds(500));
}

TEST_F(RoundTripTest, OfANewMachineTellsNothingOfTheOneBefore) {
  const Duration before = round_trip_after(system_now() - milliseconds(50));
  const TimePoint asked = system_now();
  link_->measure_anew();
  EXPECT_EQ(link_->stats().round_trip, before) << "until more is known";
  EXPECT_EQ(round_trip_after(asked - milliseconds(1)), before) << "one that was under way";
  const TimePoint since = system_now();
  std::this_thread::sleep_until(since + milliseconds(200));
  EXPECT_GE(round_trip_after(since + milliseconds(100)), milliseconds(100));
}

TEST_F(RoundTripTest, IsMeasuredSoonAndSoonAgainWhereAskedTo) {
  constexpr int kFirst = 4;
  const TimePoint begin = system_now();
  for (int i = 0; i < kFirst; ++i) next(PacketKind::kPing);
  EXPECT_LT(system_now() - begin, kInterval);
  const TimePoint asked = system_now();
  link_->measure_anew();
  for (int i = 0; i < kFirst; ++i) next(PacketKind::kPing);
  EXPECT_LT(system_now() - asked, kInterval);
  next(PacketKind::kPing);
  EXPECT_GE(system_now() - asked, kInterval) << "then as seldom as before";
}

}  // namespace
}  // namespace outrigger::transport
