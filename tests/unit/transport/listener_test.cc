// The server's port against whoever may connect to it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>

#include "common/hash.h"
#include "common/tcp.h"
#include "link_pairs.h"
#include "tests/support/ipv6.h"
#include "transport/internal/dialer.h"
#include "transport/internal/framing.h"
#include "transport/internal/socket.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TimePoint in(Duration time) { return SystemClock().now() + time; }

class ListenerTest : public testing::Test {
 protected:
  void listen(const ListenerOptions& options) {
    listener_ = std::make_unique<Listener>(Address{"127.0.0.1", 0}, "token", options);
  }
  void SetUp() override { listen({.link = quick_options()}); }

  Address address() const { return {"127.0.0.1", listener_->port()}; }
  FileDescriptor stranger() const {
    const auto at = tcp::resolve("127.0.0.1", listener_->port(), tcp::ResolveFor::kConnecting);
    return connect_to(at.front(), in(seconds(10)));
  }
  void wait_for_refusals(uint64_t count) const {
    const TimePoint limit = in(seconds(10));
    while (listener_->stats().refused < count && SystemClock().now() < limit)
      std::this_thread::yield();
    ASSERT_EQ(listener_->stats().refused, count);
  }
  void expect_a_link_each(uint16_t count) const;
  void expect_service() const {
    const auto worker = dial(address(), "token", {.link = quick_options()});
    const auto server = listener_->accept(seconds(10));
    ASSERT_TRUE(server);
    worker->send(frame_of(42));
    EXPECT_EQ(receive_one(*server).type, 42);
  }

  std::unique_ptr<Listener> listener_;
};

void expect_end(int fd) {
  std::array<std::byte, 1> byte;
  EXPECT_THROW(read_all(fd, byte, in(seconds(10))), LinkClosed);
}

TEST_F(ListenerTest, OnAllAddressesTakesBothFamilies) {
  listener_ = std::make_unique<Listener>(Address{"::", 0}, "token",
                                         ListenerOptions{.link = quick_options()});
  expect_service();
  if (!testing_support::has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  const auto worker = dial({"::1", listener_->port()}, "token", {.link = quick_options()});
  EXPECT_TRUE(listener_->accept(seconds(10)));
}

TEST_F(ListenerTest, AStrayConnectionThatLeavesIsForgotten) {
  stranger();
  wait_for_refusals(1);
  expect_service();
}

TEST_F(ListenerTest, SomeoneWhoSpeaksHttpIsTurnedAway) {
  const FileDescriptor fd = stranger();
  const std::string request =
      "GET /metrics HTTP/1.1\r\nHost: outrigger\r\nUser-Agent: prometheus\r\n\r\n";
  write_all(fd.get(), std::as_bytes(std::span(request)), in(seconds(10)));
  wait_for_refusals(1);
  expect_end(fd.get());
  expect_service();
}

TEST_F(ListenerTest, GarbageIsTurnedAway) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const FileDescriptor fd = stranger();
    write_all(fd.get(), pattern(kHelloBytes + seed * 1000, seed), in(seconds(10)));
    expect_end(fd.get());
  }
  wait_for_refusals(20);
  expect_service();
}

TEST_F(ListenerTest, WhoSaysNothingOrDripsBytesIsTurnedAwayInTime) {
  listen({.link = quick_options(), .handshake_limit = milliseconds(300)});
  const TimePoint start = SystemClock().now();
  const FileDescriptor silent = stranger();
  const FileDescriptor dripping = stranger();
  const std::array<std::byte, 1> byte{};
  const TimePoint limit = in(seconds(10));
  try {
    while (SystemClock().now() < limit) {
      write_all(dripping.get(), byte, limit);
      tcp::wait_for(dripping.get(), POLLIN, in(milliseconds(20)));
    }
    ADD_FAILURE() << "a byte now and then kept the connection open";
  } catch (const LinkClosed&) {
  }
  expect_end(silent.get());
  EXPECT_LT(SystemClock().now() - start, seconds(5));
  expect_service();
}

TEST_F(ListenerTest, ManyHalfOpenConnectionsDoNotKeepAWorkerOut) {
  listen({.link = quick_options(), .handshake_limit = seconds(60), .max_pending = 16});
  const size_t before = count_in_proc("fd");
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(stranger());
  expect_service();
  EXPECT_GE(listener_->stats().refused, 184U);
  EXPECT_LE(count_in_proc("fd"), before + 200 + 2 * 16);
}

TEST_F(ListenerTest, AWrongTokenIsRefusedWithAReasonOnBothSides) {
  try {
    dial(address(), "another token", {.link = quick_options()});
    FAIL() << "a wrong token was taken";
  } catch (const HandshakeRefused& refused) {
    EXPECT_EQ(refused.refusal(), Refusal::kToken);
    EXPECT_NE(std::string(refused.what()).find("refuses our token"), std::string::npos)
        << refused.what();
    EXPECT_NE(std::string(refused.what()).find(to_string(address())), std::string::npos)
        << refused.what();
  }
  wait_for_refusals(1);
  expect_service();
}

TEST_F(ListenerTest, GarbageAfterTheHandshakeEndsOnlyThatLink) {
  const FileDescriptor fd = dial_and_prove(address(), "token", Purpose::kSocketLink, seconds(10));
  const auto link = listener_->accept(seconds(10));
  ASSERT_TRUE(link);
  write_all(fd.get(), pattern(5000, 1), in(seconds(10)));
  EXPECT_NE(wait_for_end(*link).find("garbage"), std::string::npos);
  expect_service();
}

TEST_F(ListenerTest, APeerThatIgnoresItsCreditsIsCutOff) {
  const FileDescriptor fd = dial_and_prove(address(), "token", Purpose::kSocketLink, seconds(10));
  const auto link = listener_->accept(seconds(10));
  ASSERT_TRUE(link);
  const Bytes piece(100'000);
  const HeaderBytes header = encode(
      {.kind = PacketKind::kStart, .length = 100'000, .message_size = 100'000, .total = 100'000});
  for (int i = 0; i < 10; ++i) {  // ten fit
    write_all(fd.get(), header, in(seconds(10)));
    write_all(fd.get(), piece, in(seconds(10)));
  }
  write_all(fd.get(), header, in(seconds(10)));
  const TimePoint limit = in(seconds(10));
  while (!link->closed_reason() && SystemClock().now() < limit) std::this_thread::yield();
  EXPECT_NE(link->closed_reason().value_or("nothing").find("beyond its credits"),
            std::string::npos);
  EXPECT_LE(link->stats().bytes_received, quick_options().window_bytes);
}

TEST_F(ListenerTest, APeerThatStopsInTheMiddleOfAFrameIsNoticed) {
  LinkOptions options = quick_options();
  options.silence_limit = milliseconds(300);
  listen({.link = options});
  const FileDescriptor fd = dial_and_prove(address(), "token", Purpose::kSocketLink, seconds(10));
  const auto link = listener_->accept(seconds(10));
  ASSERT_TRUE(link);
  write_all(
      fd.get(),
      encode({.kind = PacketKind::kStart, .length = 1000, .message_size = 1000, .total = 1000}),
      in(seconds(10)));
  EXPECT_NE(wait_for_end(*link).find("nothing was heard"), std::string::npos);
}

void ListenerTest::expect_a_link_each(uint16_t count) const {
  std::vector<std::thread> workers;
  for (uint16_t i = 0; i < count; ++i) {
    workers.emplace_back([&, i] {
      const auto link = dial(address(), "token", {.link = quick_options()});
      link->send(frame_of(i));
      EXPECT_EQ(receive_one(*link).type, i);
    });
  }
  std::vector<std::unique_ptr<Link>> links;
  std::vector<bool> seen(count);
  for (int i = 0; i < count; ++i) {
    links.push_back(listener_->accept(seconds(10)));
    ASSERT_TRUE(links.back());
    const uint16_t type = receive_one(*links.back()).type;
    seen.at(type) = true;
    links.back()->send(frame_of(type));
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), count);
}

TEST_F(ListenerTest, ThirtyWorkersAtOnceGetALinkEach) { expect_a_link_each(30); }

TEST_F(ListenerTest, ACrowdDoesNotDropOneAnother) {
  listen({.link = quick_options(), .max_pending = 2, .grace = seconds(60)});
  expect_a_link_each(30);
  EXPECT_EQ(listener_->stats().refused, 0U);
}

TEST_F(ListenerTest, CloseFreesWhoeverWaitsInAccept) {
  std::thread closer([&] { listener_->close(); });
  EXPECT_THROW(
      {
        for (;;) listener_->accept(seconds(10));
      },
      Cancelled);
  closer.join();
}

TEST_F(ListenerTest, APortInUseIsNamed) {
  try {
    const Listener second(address(), "token");
    FAIL() << "two listeners on one port";
  } catch (const IoError& failure) {
    EXPECT_NE(std::string(failure.what()).find(to_string(address())), std::string::npos)
        << failure.what();
  }
}

TEST_F(ListenerTest, DiallingNobodyFailsWithTheAddress) {
  const Address there = address();
  listener_.reset();
  try {
    dial(there, "token");
    FAIL() << "nobody listens, yet there is a link";
  } catch (const IoError& failure) {
    EXPECT_NE(std::string(failure.what()).find(to_string(there)), std::string::npos)
        << failure.what();
  }
}

TEST_F(ListenerTest, DiallingSomeoneWhoNeverAnswersEndsInTime) {
  const FileDescriptor deaf = listen_on({"127.0.0.1", 0});
  const TimePoint start = SystemClock().now();
  EXPECT_THROW(dial({"127.0.0.1", local_port(deaf.get())}, "token", {.limit = milliseconds(200)}),
               LinkClosed);
  EXPECT_LT(SystemClock().now() - start, seconds(3));
}

TEST(ListenerOptionsTest, NoConnectionsAtAllAreImpossible) {
  EXPECT_DEATH(Listener({"127.0.0.1", 0}, "token", {.max_pending = 0}), "takes connections");
}

TEST(ListenerAddressTest, AnEmptyHostTakesBothVersionsOfIp) {
  Listener listener({"", 0}, "token");
  for (const char* host : {"127.0.0.1", "::1", "localhost"}) {
    if (std::string(host) == "::1" && !testing_support::has_ipv6()) continue;
    const auto worker = dial({host, listener.port()}, "token");
    const auto server = listener.accept(seconds(10));
    ASSERT_TRUE(server) << host;
    worker->send(frame_of(1));
    EXPECT_EQ(receive_one(*server).type, 1);
  }
}

}  // namespace
}  // namespace outrigger::transport
