// What a link promises when the process at its other side dies, stands still, floods or is slow.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>

#include "common/file.h"
#include "common/tcp.h"
#include "known_failures.h"
#include "link_pairs.h"
#include "transport/internal/acceptor.h"
#include "transport/internal/gloo.h"
#include "transport/internal/socket.h"

extern char** environ;

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A link_peer process; killed at the end.
class Peer {
 public:
  Peer(Carrier carrier, uint16_t port, const std::string& mode) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw_errno("pipe", errno);
    input_.reset(pipe[1]);
    const FileDescriptor read_end(pipe[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, read_end.get(), 0);
    const std::vector<std::string> words = {OUTRIGGER_LINK_PEER,
                                            carrier == Carrier::kGloo ? "gloo" : "sockets",
                                            "127.0.0.1",
                                            std::to_string(port),
                                            "token",
                                            mode};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int failure =
        posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw_errno(std::string("spawning ") + OUTRIGGER_LINK_PEER, failure);
  }
  ~Peer() {
    signal(SIGKILL);
    signal(SIGCONT);
    wait();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  pid_t pid() const { return pid_; }
  void tell() const { ASSERT_EQ(::write(input_.get(), "\n", 1), 1); }

 private:
  pid_t pid_ = -1;
  FileDescriptor input_;
};

class LinkProcessTest : public testing::TestWithParam<Carrier> {
 protected:
  void start(const std::string& mode, const LinkOptions& options = quick_options()) {
    listener_ = std::make_unique<Listener>(Address{"127.0.0.1", 0}, "token",
                                           ListenerOptions{.link = options});
    peer_ = std::make_unique<Peer>(GetParam(), listener_->port(), mode);
    link_ = listener_->accept(seconds(20));
    ASSERT_TRUE(link_);
  }
  /// A frame there and back: after it the other side is up.
  void ping() {
    link_->send(frame_of(99));
    EXPECT_EQ(receive_one(*link_).type, 99);
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Peer> peer_;
  std::unique_ptr<Link> link_;
};

TEST_P(LinkProcessTest, FramesGoThereAndBack) {
  start("echo");
  const Bytes bytes = pattern(1'000'000, 5);
  link_->send(frame_of(5, pattern(100, 1), {bytes, Bytes{}, pattern(17, 2)}));
  const ReceivedFrame frame = receive_one(*link_);
  EXPECT_EQ(frame.message, pattern(100, 1));
  ASSERT_EQ(frame.payloads.size(), 3U);
  EXPECT_EQ(Bytes(frame.payloads[0].bytes.begin(), frame.payloads[0].bytes.end()), bytes);
}

TEST_P(LinkProcessTest, AKilledPeerIsNoticedAtOnce) {
  start("echo");
  ping();
  const TimePoint start = SystemClock().now();
  peer_->signal(SIGKILL);
  EXPECT_THROW(link_->receive(seconds(30)), LinkClosed);
  EXPECT_LT(SystemClock().now() - start, seconds(1));
  EXPECT_THROW(link_->send(frame_of(1)), LinkClosed);
}

TEST_P(LinkProcessTest, APeerKilledInTheMiddleOfAFrameLeavesNoHalfFrame) {
  start("flood");
  receive_one(*link_);
  peer_->signal(SIGKILL);
  try {
    for (;;) {
      const auto frame = link_->receive(seconds(30));
      ASSERT_TRUE(frame);
      ASSERT_EQ(frame->payloads.size(), 2U);
      ASSERT_EQ(frame->payloads[1].bytes.size(), 300'000U);
    }
  } catch (const LinkClosed&) {
  }
}

TEST_P(LinkProcessTest, AStoppedPeerIsGoneAfterTheSilenceLimit) {
  LinkOptions options = quick_options();
  options.silence_limit = milliseconds(500);
  start("echo", options);
  ping();
  const TimePoint start = SystemClock().now();
  peer_->signal(SIGSTOP);
  EXPECT_THROW(link_->receive(seconds(30)), LinkClosed);
  const Duration took = SystemClock().now() - start;
  EXPECT_GE(took, milliseconds(400));
  EXPECT_LT(took, seconds(3));
}

TEST_P(LinkProcessTest, AStoppedPeerFreesWhoeverIsSendingToIt) {
  LinkOptions options = quick_options();
  options.silence_limit = milliseconds(500);
  start("echo", options);
  ping();
  peer_->signal(SIGSTOP);
  const Bytes large(size_t{30} << 20);
  const TimePoint start = SystemClock().now();
  EXPECT_THROW(link_->send({.type = 1, .payloads = {Payload::borrowed(large)}}), LinkClosed);
  EXPECT_LT(SystemClock().now() - start, seconds(4));
}

TEST_P(LinkProcessTest, APeerThatStandsStillForLessThanTheLimitStays) {
  LinkOptions options = quick_options();
  options.silence_limit = seconds(4);
  start("echo", options);
  ping();
  peer_->signal(SIGSTOP);
  EXPECT_FALSE(link_->receive(milliseconds(700)));
  peer_->signal(SIGCONT);
  ping();
}

TEST_P(LinkProcessTest, AFloodingPeerDoesNotFillOurMemory) {
  const LinkOptions options = quick_options();
  start("flood", options);
  EXPECT_FALSE(link_->closed_reason());
  while (link_->stats().bytes_untaken < options.window_bytes / 2) std::this_thread::yield();
  const Link* link = link_.get();
  const uint64_t received = link->stats().bytes_received;
  EXPECT_LE(received, options.window_bytes);
  for (int i = 0; i < 20; ++i) receive_one(*link_);
  EXPECT_LE(link->stats().bytes_untaken, options.window_bytes);
}

TEST_P(LinkProcessTest, ASlowPeerSlowsTheSenderAndStaysConnected) {
  LinkOptions options = quick_options();
  options.silence_limit = seconds(2);
  start("slow", options);
  EXPECT_EQ(receive_one(*link_).type, 1);
  const Payload payload = Payload::of(Bytes(size_t{10} << 20));
  int sent = 0;
  while (link_->send_within({.type = 1, .payloads = {payload}}, milliseconds(300)))
    ASSERT_LT(++sent, 100);
  // Longer than the silence limit: its heartbeats keep it.
  EXPECT_FALSE(link_->receive(milliseconds(2500)));
  for (int i = 0; i < 2; ++i) peer_->tell();
  EXPECT_TRUE(link_->send_within({.type = 1, .payloads = {payload}}, seconds(20)));
  EXPECT_FALSE(link_->closed_reason());
}

TEST_P(LinkProcessTest, TwentyPeersKilledOneAfterAnotherLeaveNothingBehind) {
  start("echo");
  ping();
  link_.reset();
  const size_t descriptors = count_in_proc("fd");
  for (int i = 0; i < 20; ++i) {
    peer_ = nullptr;
    peer_ = std::make_unique<Peer>(GetParam(), listener_->port(), "flood");
    link_ = listener_->accept(seconds(20));
    ASSERT_TRUE(link_);
    receive_one(*link_);
    peer_->signal(SIGKILL);
    EXPECT_FALSE(wait_for_end(*link_).empty());
    link_.reset();
  }
  EXPECT_EQ(count_in_proc("fd"), descriptors);
}

/// A worker behind NAT can dial out and cannot be dialled: whoever needs a port of the worker's own
/// fails there.
TEST_P(LinkProcessTest, AWorkerThatMayNotListenGetsALink) {
  Listener listener({"127.0.0.1", 0}, "token",
                    {.link = quick_options(), .handshake_limit = seconds(1)});
  const Peer peer(GetParam(), listener.port(), "nat");
  const auto link = listener.accept(seconds(20));
  expect_kept(GetParam(), link != nullptr, "no link came up");
}

/// What a worker tells about the port of its pair: Gloo's address is a sockaddr_storage and a
/// number.
tcp::SocketAddress port_of_pair(const std::vector<char>& address) {
  sockaddr_in in{};
  std::memcpy(&in, address.data(), sizeof in);
  return tcp::resolve("127.0.0.1", ntohs(in.sin_port), tcp::ResolveFor::kConnecting).front();
}

class StrangerTest : public LinkProcessTest {
 protected:
  /// Lets a stranger connect to the port that the worker's half of a link listens on, in the moment
  /// in which it does. Null: there is no such port. Afterwards the worker's half is told to connect
  /// to a server that is not there.
  FileDescriptor intrude(Acceptor& server, Connection& worker) {
    worker = server.accept(seconds(20)).value();
    if (worker.purpose == Purpose::kSocketLink) return {};
    const TimePoint limit = SystemClock().now() + seconds(10);
    pair_ = port_of_pair(read_blob(worker.fd.get(), 1024, limit));
    return connect_to(pair_, limit);
  }
  /// Whether whoever connects to the port after the stranger is turned away.
  bool is_taken() const {
    const TimePoint limit = SystemClock().now() + seconds(5);
    while (SystemClock().now() < limit) {
      try {
        connect_to(pair_, limit);
      } catch (const IoError&) {
        return true;
      }
    }
    return false;
  }

  tcp::SocketAddress pair_;
};

TEST_P(StrangerTest, AStrangerOnALinksOwnPortDoesNotEndTheProcess) {
  Acceptor server({"127.0.0.1", 0}, "token", {});
  Peer peer(GetParam(), server.port(), "idle");
  Connection worker;
  const FileDescriptor stranger = intrude(server, worker);
  if (stranger) {
    // Gloo's preamble: a message for a slot on which nobody waits.
    const std::array<uint64_t, 6> preamble = {48, 1, 77, 0, 8, 0};
    write_all(stranger.get(), std::as_bytes(std::span(preamble)),
              SystemClock().now() + seconds(10));
    std::array<std::byte, 1> byte;
    EXPECT_THROW(read_all(stranger.get(), byte, SystemClock().now() + seconds(10)), LinkClosed);
  }
  worker.fd.reset();
  const int status = peer.wait();
  expect_kept(GetParam(), !WIFSIGNALED(status),
              "the worker ended by signal " + std::to_string(WTERMSIG(status)));
}

TEST_P(StrangerTest, AStrangerOnALinksOwnPortDoesNotKeepThePeerOut) {
  Acceptor server({"127.0.0.1", 0}, "token", {});
  const Peer peer(GetParam(), server.port(), "idle");
  Connection worker;
  const FileDescriptor stranger = intrude(server, worker);
  expect_kept(GetParam(), !stranger || !is_taken(), "the stranger has taken the peer's place");
}

std::vector<Carrier> between_processes() {
  std::vector<Carrier> result;
  for (const Carrier carrier : carriers()) {
    if (carrier != Carrier::kMemory) result.push_back(carrier);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Every, StrangerTest, testing::ValuesIn(between_processes()),
                         [](const auto& test) { return to_string(test.param); });
INSTANTIATE_TEST_SUITE_P(Every, LinkProcessTest, testing::ValuesIn(between_processes()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace outrigger::transport
