// What a link promises when the process at its other side dies, stands still, floods or is slow.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "common/file.h"
#include "known_failures.h"
#include "link_pairs.h"

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
  void SetUp() override { skip_known_failure(GetParam()); }

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

/// Inodes of the sockets that some process of this network namespace listens on.
std::set<std::string> listening_inodes() {
  std::set<std::string> inodes;
  for (const char* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::vector<std::string> fields;
      for (std::string word; words >> word;) fields.push_back(word);
      if (fields.size() > 9 && fields[3] == "0A") inodes.insert(fields[9]);
    }
  }
  return inodes;
}

/// A worker behind NAT can dial out and cannot be dialled: whoever needs a port of the worker's own
/// fails there.
TEST_P(LinkProcessTest, AWorkerListensOnNoPort) {
  start("echo");
  ping();
  const auto listening = listening_inodes();
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(peer_->pid()) + "/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (!target.starts_with("socket:[")) continue;
    EXPECT_FALSE(listening.contains(target.substr(8, target.size() - 9))) << target;
  }
}

std::vector<Carrier> between_processes() {
  std::vector<Carrier> result;
  for (const Carrier carrier : carriers()) {
    if (carrier != Carrier::kMemory) result.push_back(carrier);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Every, LinkProcessTest, testing::ValuesIn(between_processes()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace outrigger::transport
