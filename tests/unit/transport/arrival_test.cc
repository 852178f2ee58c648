// How fast a link is, by when what came over it came.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <utility>

#include "common/tcp.h"
#include "transport/internal/arrival_meter.h"
#include "transport/internal/socket.h"
#include "transport/link.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ArrivalTest : public testing::Test {
 protected:
  ArrivalTest() {
    const FileDescriptor listener = listen_on({"127.0.0.1", 0});
    const auto address =
        tcp::resolve("127.0.0.1", local_port(listener.get()), tcp::ResolveFor::kConnecting).front();
    sender_ = connect_to(address, in_time());
    FileDescriptor accepted;
    while (!accepted)
      accepted = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    channel_ = make_socket_channel(std::move(accepted), seconds(20));
  }
  static TimePoint in_time() { return system_now() + seconds(20); }

  /// Frames in some parts each, with a pause behind every part.
  void send(int frames, Duration pause) {
    for (int i = 0; i < frames * kParts; ++i) {
      write_all(sender_.get(), part_, in_time());
      std::this_thread::sleep_for(pause);
    }
  }
  void receive(int frames, Duration begin) {
    std::this_thread::sleep_for(begin);
    for (int i = 0; i < frames; ++i) {
      const std::array<std::span<std::byte>, 1> piece = {frame_};
      channel_->read(piece);
    }
  }

  static constexpr int kParts = 8;
  static constexpr size_t kPart = 4096;
  FileDescriptor sender_;
  std::unique_ptr<Channel> channel_;
  const std::array<std::byte, kPart> part_{};
  std::array<std::byte, kParts * kPart> frame_{};
};

TEST_F(ArrivalTest, TellsHowFastWhatComesInPartsComes) {
  const milliseconds pause(4);
  std::jthread sender([&] { send(10, pause); });
  receive(10, Duration{0});
  const double fastest = static_cast<double>(kPart) / to_seconds(pause);
  EXPECT_GT(channel_->arrival_rate(), 0);
  EXPECT_LT(channel_->arrival_rate(), 1.1 * fastest);
}

TEST_F(ArrivalTest, IsNotDeceivedByAReaderThatIsLate) {
  std::jthread sender([&] { send(10, Duration{0}); });
  receive(10, milliseconds(100));
  const double rate = channel_->arrival_rate();
  EXPECT_TRUE(rate == 0 || rate > 1e7) << rate << " bytes a second";
}

TEST_F(ArrivalTest, PausesBetweenFramesAreNobodysWidth) {
  std::jthread sender([&] {
    for (int i = 0; i < 10; ++i) {
      send(1, Duration{0});
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  receive(10, Duration{0});
  const double rate = channel_->arrival_rate();
  EXPECT_TRUE(rate == 0 || rate > 1e7) << rate << " bytes a second";
}

/// A reader of frames of 48 KB, in milliseconds.
class Reader {
 public:
  void begin(bool goes_on) { meter.begin(goes_on); }
  void read(size_t bytes, int arrived, int now, bool ahead = false) {
    meter.note(bytes, ahead, Duration(milliseconds(arrived)), Duration(milliseconds(now)));
  }
  ArrivalMeter meter;
};

TEST(ArrivalMeter, CountsWhatCameBehindTheFirstOfAFrame) {
  Reader reader;
  for (int i = 0; i < 8; ++i) {
    reader.begin(false);
    reader.read(16'000, 100 * i, 100 * i);
    reader.read(32'000, 100 * i + 16, 100 * i + 17);
    reader.meter.end();
  }
  EXPECT_NEAR(reader.meter.rate(), 2e6, 1);
}

TEST(ArrivalMeter, WhatCameWithThePartBehindItSaysNothing) {
  Reader reader;
  for (int i = 0; i < 8; ++i) {
    reader.begin(false);
    reader.read(16'000, 100 * i, 100 * i);
    reader.read(32'000, 100 * i + 60, 100 * i + 65, true);  // the next frame's came after a pause
    reader.meter.end();
  }
  EXPECT_EQ(reader.meter.rate(), 0);
}

TEST(ArrivalMeter, BehindALateReadTimeBeginsWithIt) {
  Reader reader;
  for (int i = 0; i < 8; ++i) {
    reader.begin(false);
    reader.read(16'000, 200 * i, 200 * i + 100);  // meanwhile there was no room for more
    reader.read(32'000, 200 * i + 104, 200 * i + 104);
    reader.meter.end();
  }
  EXPECT_NEAR(reader.meter.rate(), 8e6, 1);
}

TEST(ArrivalMeter, WhatCameAtOnceIsFastAndNotWithoutEnd) {
  Reader reader;
  for (int i = 0; i < 100'000; ++i) {
    reader.begin(true);
    reader.read(16'000, 5, 5);
    reader.meter.end();
  }
  EXPECT_GT(reader.meter.rate(), 1e9);
  EXPECT_LT(reader.meter.rate(), 1e12);
}

TEST(ArrivalMeter, AClockThatWasSetSaysNothing) {
  Reader reader;
  for (int i = 0; i < 8; ++i) {
    reader.begin(false);
    reader.read(16'000, 0, 0);
    reader.read(16'000, i % 2 == 0 ? 3'600'000 : 8, 8);
    reader.meter.end();
  }
  EXPECT_EQ(reader.meter.rate() == 0 || reader.meter.rate() > 1.9e6, true) << reader.meter.rate();
}

TEST(LinkStats, TheRateIsThatOfTheSlowerDirectionThatIsKnown) {
  EXPECT_EQ((LinkStats{}.rate()), 0);
  EXPECT_EQ((LinkStats{.send_rate = 5}.rate()), 5);
  EXPECT_EQ((LinkStats{.receive_rate = 6}.rate()), 6);
  EXPECT_EQ((LinkStats{.send_rate = 5, .receive_rate = 3}.rate()), 3);
}

}  // namespace
}  // namespace outrigger::transport
